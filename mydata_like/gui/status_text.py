"""The sentence that summarises the state of program and data."""

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, NamedTuple

from PySide6.QtCore import QCoreApplication

from mydata_like.core.deletion import PARTIAL_REASONS, Safety
from mydata_like.core.errors import Problem
from mydata_like.core.events import RunProgressed, StagesMeasured
from mydata_like.core.formatting import round_estimate
from mydata_like.gui.run_state import PastRunState, Phase, RunState
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.texts import limit_name

translate = QCoreApplication.translate


class ProblemText(NamedTuple):
    """A problem in a sentence, what to do about it, and more for experts; often there is none."""

    sentence: str
    hint: str
    details: str = ""


def describe_problem(problem: Problem) -> ProblemText:
    """Return the text of a problem; what only experts understand is a detail."""
    said = (problem.message, problem.hint)
    text = ProblemText(*(texts.with_labels(texts.engine_text(one)) for one in said))
    sentence, hint = _word_plainly(problem.code)
    if not sentence:
        return text
    details = (text.sentence, text.hint if hint else "")
    return ProblemText(sentence, hint or text.hint, "\n".join(filter(None, details)))


# Codes of problems that are the same to the user.
_NO_ANSWER: Final = (
    "server.unreachable",
    "server.unavailable",
    "server.slow",
    "server.connection-lost",
)
_STORAGE_REFUSES: Final = (
    *("ssh.exec-refused", "ssh.sftp-refused", "ssh.no-channel", "ssh.no-agreement"),
    *("staging.denied", "staging.refused", "staging.protocol", "staging.shell"),
    *("staging.flood", "staging.incomplete", "staging.no-host"),
)


def _word_plainly(code: str) -> tuple[str, str]:
    """Return the sentence and the hint for a problem whose own text is for experts, or nothing.

    Without a hint, that of the problem is plain.
    """
    kept = translate("sentences", "Your files are kept.")
    ask = translate("sentences", "Your files are kept. Send the details to your administrator.")
    if code.startswith(("link.", "channel.")):
        return translate("sentences", "The server's storage does not answer."), kept
    if code in _NO_ANSWER:
        return translate("sentences", "The server does not answer."), kept
    if code in _STORAGE_REFUSES:
        return translate("sentences", "The server's storage does not accept the files."), ask
    if code in ("uploader.revoked", "uploader.expired"):
        return (
            translate("sentences", "Your facility no longer lets this computer in."),
            translate("sentences", "Your files are kept. Ask your facility to approve it."),
        )
    if code in ("ssh.key-refused", "ssh.expired"):
        return translate("sentences", "The server's storage does not let this computer in."), ask
    if code in ("staging.unproven", "staging.missing"):
        return translate("sentences", "A file did not arrive as it was sent."), kept
    known = {
        "host-key.changed": (
            translate("sentences", "The server's storage has changed its identity."),
            translate("sentences", "Nothing is sent until your administrator confirms it."),
        ),
        "host-key.unknown": (
            translate("sentences", "The server's storage is new to this computer."),
            translate("sentences", "Nothing is sent until you confirm its fingerprint."),
        ),
        "uploader.not-approved": (
            translate("sentences", "Waiting for your facility to let this computer in."),
            translate(
                "sentences", "“Check key and approval” has a message for them, which you can copy."
            ),
        ),
        "uploader.not-admitted": (
            translate(
                "sentences",
                "Your facility has approved this computer, but the server's storage does "
                "not let it in yet.",
            ),
            translate("sentences", "The program tries again automatically."),
        ),
        "window.engine-ended": (
            translate("sentences", "Uploading ended unexpectedly."),
            translate("sentences", "Nothing is lost. Start continues it at once."),
        ),
        "item.rejected": (translate("sentences", "The server does not accept this."), ask),
        "staging.full": (translate("sentences", "The server is full."), ""),
        "waiting.recheck": (translate("sentences", "The server may have lost this file."), ""),
        "verify.failed": (
            translate("sentences", "The server's copy is damaged, although it was sent twice."),
            "",
        ),
        "ledger.damaged": (
            translate("sentences", "The list of what was sent was damaged."),
            translate(
                "sentences",
                "The next run asks the server for its files, which takes a little longer.",
            ),
        ),
    }
    return known.get(code, ("", ""))


def overview_sentence(state: RunState) -> str:
    """Return the state in one sentence."""
    problem = describe_problem(state.problem).sentence.rstrip(".") if state.problem else ""
    match state.phase:
        case Phase.LOADING:
            return translate("sentences", "Reading the settings")
        case Phase.UNSET:
            return translate("sentences", "Not set up yet")
        case Phase.STARTING:
            return translate("sentences", "Starting")
        case Phase.PAUSING:
            return translate("sentences", "Pausing")
        case Phase.STOPPING:
            return translate("sentences", "Stopping")
        case Phase.TESTING:
            return translate("sentences", "A speed test is in progress")
        case Phase.BROKEN:
            return problem or translate("sentences", "The engine has stopped")
        case Phase.PAUSED:
            by_person = state.problem is not None and state.problem.code == "run.paused"
            paused = translate("sentences", "Paused")
            return paused if by_person else problem or paused
        case _:
            return _describe_run(state.sums) if state.at_work else _describe_rest(state)


def limit_sentence(measured: StagesMeasured | None) -> str:
    """Return what limits a run, and its speed; empty if unknown."""
    if measured is None or not measured.limit:
        return ""
    name = limit_name(measured.limit)
    if not measured.byte_rate:
        return texts.filled(translate("sentences", "The limit: %1"), name)
    text = translate("sentences", "The limit: %1, at %2")
    return texts.filled(text, name, texts.rate(measured.byte_rate))


def _describe_run(sums: RunProgressed) -> str:
    left = max(0, sums.wanted - sums.sent)
    if left and sums.remaining:
        text = translate("sentences", "Sending %Ln file(s), about %1 left", None, left)
        return text.replace("%1", texts.span(round_estimate(sums.remaining)))
    if left:
        return translate("sentences", "Sending %Ln file(s)", None, left)
    unproven = sums.found - sums.verified - sums.waiting - sums.skipped - sums.failed
    if sums.wanted and unproven > 0:
        return translate("sentences", "The server is checking %Ln file(s)", None, unproven)
    return translate("sentences", "Looking through %Ln file(s)", None, sums.found)


def amount_sentence(state: RunState) -> str:
    """Return how many of a run's bytes were sent, and how fast; empty if there are none."""
    sums = state.sums
    if not state.at_work or not sums.wanted_bytes:
        return ""
    sent = min(sums.transferred_bytes, sums.wanted_bytes)
    text = translate("sentences", "%1 of %2 sent, %3 %")
    if state.speed:
        text = translate("sentences", "%1 of %2 sent, %3 %, at %4")
    amounts = texts.size(sent), texts.size(sums.wanted_bytes)
    words = (*amounts, texts.count(100 * sent // sums.wanted_bytes), texts.rate(state.speed))
    return texts.filled(text, *words)


def _describe_rest(state: RunState) -> str:
    last, risk = state.last, state.at_risk
    if state.data_problem is not None:
        return describe_problem(state.data_problem).sentence.rstrip(".")
    if state.awaited is not None:
        if last is None or last.problem is not None or not last.verified:
            return describe_problem(state.awaited).sentence.rstrip(".")
        safe = translate("sentences", "%Ln file(s) are safe", None, last.verified)
        return _describe_open(state, last) or safe
    if state.interrupted is None and last is not None and last.problem is None:
        return _describe_open(state, last) or _describe_safe(state, last)
    # No run has sent everything: say why, and which files exist only here as a result.
    why = translate("sentences", "Ready to start")
    if state.interrupted is not None:
        why = translate("sentences", "The last run was interrupted")
    elif last is not None and last.problem is not None:
        why = describe_problem(last.problem).sentence.rstrip(".")
    if not risk.files:
        return why
    text = translate(
        "sentences", "%1. %Ln file(s) (%2) are still only on this computer", None, risk.files
    )
    return texts.filled(text, why, texts.size(risk.bytes))


def _describe_open(state: RunState, last: PastRunState) -> str:
    """Return what needs the user's attention or remains for the next run; empty if nothing does."""
    sources, at_risk = len(state.sources), state.at_risk.files
    if last.failed:
        return translate("sentences", "%Ln file(s) need your attention", None, last.failed)
    if last.left_behind:
        return translate(
            "sentences",
            "%Ln file(s) or folder(s) were left out and are not on the server",
            None,
            last.left_behind,
        )
    if last.waiting:
        return translate("sentences", "%Ln file(s) wait for the next run", None, last.waiting)
    if sources:
        return translate(
            "sentences", "%Ln upload(s) that you added are not finished", None, sources
        )
    if at_risk:
        return translate("sentences", "%Ln file(s) are still only on this computer", None, at_risk)
    return ""


def _describe_safe(state: RunState, last: PastRunState) -> str:
    if not last.found:
        return translate("sentences", "No files were found")
    if not last.verified:
        return translate("sentences", "No files to send were found")
    if last.partial or state.safety is not Safety.SAFE:
        return translate(
            "sentences", "%Ln file(s) of the last upload are safe", None, last.verified
        )
    text = translate("sentences", "All %Ln file(s) are safe on the server", None, last.verified)
    if state.kept:
        text = translate("sentences", "%Ln file(s) are safe on the server", None, last.verified)
    if last.compared is not None:
        both = translate("sentences", "%1, last compared %2")
        text = texts.filled(both, text, texts.moment(last.compared))
    else:  # of what existed when the run began
        text = texts.filled(translate("sentences", "%1 as of %2"), text, texts.moment(last.started))
    if state.kept:
        both = translate(
            "sentences",
            "%1; %Ln file(s) differ from the server's copies, which you kept",
            None,
            state.kept,
        )
        text = both.replace("%1", text)
    return text


def next_try_sentence(state: RunState, now: datetime) -> str:
    """Return in how long a paused run tries to go on; empty if it does not, or is trying."""
    seconds = (state.next_try - now).total_seconds() if state.next_try else 0.0
    if seconds < 1:
        return ""
    return translate("sentences", "Next try in %1.").replace("%1", texts.span(seconds))


END_STEP: Final = 300  # seconds to which the end is rounded
# The time left is wrong by less than 60 % in nine of ten cases; see tests/trials/time_left.py.
EARLIEST_END: Final = 1 / 1.6
LATEST_END: Final = 1 / 0.4


def end_sentence(state: RunState, now: datetime) -> str:
    """Return by when a run will be done if the user leaves; empty if that is not known.

    It is not known while the computer may go to sleep, or while the run is paused.
    """
    sums = state.sums
    if state.phase is not Phase.RUNNING or not sums.awake or not sums.remaining:
        return ""
    complete = not (state.reason in PARTIAL_REASONS or sums.failed or sums.waiting or sums.skipped)
    awake = translate("sentences", "You may lock the screen; the computer stays awake until then.")
    if state.rise or sums.seconds * 3 < sums.remaining:  # less than a quarter of the run
        text = translate("sentences", "What is being sent will be safe between %1 and %2.")
        if complete:
            text = translate("sentences", "Everything will be safe between %1 and %2.")
        first = _describe_end(now, sums.remaining * EARLIEST_END, math.floor)
        text = texts.filled(text, first, _describe_end(now, sums.remaining * LATEST_END, math.ceil))
    else:
        text = translate("sentences", "What is being sent will be safe by about %1.")
        if complete:
            text = translate("sentences", "Everything will be safe by about %1.")
        text = texts.filled(text, _describe_end(now, sums.remaining, math.ceil))
    return f"{text} {awake}"


def _describe_end(now: datetime, seconds: float, rounded: Callable[[float], int]) -> str:
    end = rounded((now.timestamp() + seconds) / END_STEP) * END_STEP
    at = datetime.fromtimestamp(end, UTC)
    today = at.astimezone().date() == now.astimezone().date()
    return texts.clock(at) if today else texts.moment(at, now)


def safe_sentence(state: RunState) -> str:
    """Return until when everything is known to be safe; empty if that is not known, or said.

    At rest, `overview_sentence` says it.

    What a complete run found and the server verified is safe, unless the ledger has an unsafe file
    that is older than that run. Added folders that are not finished may have such files too.
    """
    whole = state.newest_whole
    if whole is None or not whole.safe or not whole.verified or state.sources:
        return ""
    risk = state.at_risk
    said = not state.at_work and state.safety is Safety.SAFE and state.last == whole
    if state.safety is Safety.PROBLEM or (said and state.interrupted is None):
        return ""
    if risk.files and (risk.oldest is None or risk.oldest <= whole.started):
        return ""
    text = translate("sentences", "Everything up to %1 is safe on the server.")
    if whole.skipped:
        text = translate(
            "sentences",
            "Everything up to %1 is safe on the server, except for what was left out.",
        )
    if whole.kept:
        text = translate(
            "sentences",
            "Everything up to %1 is safe on the server, except for the files whose copies "
            "on the server you kept.",
        )
    if whole.skipped > whole.kept > 0:
        text = translate(
            "sentences",
            "Everything up to %1 is safe on the server, except for what was left out and the files "
            "whose copies on the server you kept.",
        )
    text = text.replace("%1", texts.moment(whole.started))
    if whole.compared is None:
        return text
    compared = translate("sentences", "%1 Last compared with it %2.")
    return texts.filled(compared, text, texts.moment(whole.compared))
