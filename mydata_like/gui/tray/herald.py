"""Decides which changes are worth a message to a person who looks elsewhere."""

from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple

from PySide6.QtCore import QCoreApplication

from mydata_like.core.deletion import Safety
from mydata_like.core.errors import Problem
from mydata_like.gui.look import words
from mydata_like.gui.state import PastRun, Phase, RunState
from mydata_like.gui.tray.judgement import needs_somebody

translate = QCoreApplication.translate

QUIET: Final = 600.0  # seconds between two messages of one kind
SILENCE: Final = "monitor.silence"


class Kind(Enum):
    """What a message is about; the value is the setting that switches it off."""

    FINISHED = "notify_finished"
    PROBLEM = "notify_problem"
    APPROVAL = "notify_approval"
    SILENCE = "notify_silence"


class Message(NamedTuple):
    """A few words for a person, and the page that tells more (or none).

    What belongs to no kind cannot be switched off.
    """

    kind: Kind | None
    title: str
    text: str
    page: str


class Herald:
    """Hears how things stand, and says what a person should hear; never the same thing twice.

    `is_wanted` tells whether a kind is switched on. Times are seconds of any clock that only
    goes forward.
    """

    def __init__(self, is_wanted: Callable[[Kind], bool]) -> None:
        self._is_wanted = is_wanted
        self._before = RunState()
        self._silent_until: dict[tuple[Kind | None, str], float] = {}
        self._known: set[Problem] = set()  # problems that were told since all was well

    def hear_state(self, state: RunState, now: float) -> Message | None:
        """Return what to say now that things stand like this."""
        before, self._before = self._before, state
        if before.at_work and not state.at_work and state.last not in (None, before.last):
            assert state.last is not None
            return self._tell_end(state, state.last, now)
        if (state.awaited is None) != (before.awaited is None):
            return self._tell_approval(state, now)
        if state.phase is Phase.PAUSED and state.problem not in (None, before.problem):
            assert state.problem is not None
            return self.hear_problem(state.problem, now)
        return None

    def hear_problem(self, problem: Problem, now: float) -> Message | None:
        """Return what to say of this problem: nothing if nobody can mend it, or it is known."""
        if problem.code == SILENCE:
            title = translate("herald", "Nothing is uploaded")
            return self._say(Message(Kind.SILENCE, title, _tell(problem), "log"), now)
        if not needs_somebody(problem) or problem in self._known:
            return None
        title = translate("herald", "Something needs you")
        message = self._say(Message(Kind.PROBLEM, title, _tell(problem), "problems"), now)
        if message:
            self._known.add(problem)
        return message

    def _tell_end(self, state: RunState, run: PastRun, now: float) -> Message | None:
        if run.safe and not run.partial:
            self._known.clear()
        if run.problem is not None:
            return None  # told as a problem
        if run.failed:
            text = translate("herald", "%n file(s) could not be uploaded.", None, run.failed)
            return self.hear_problem(Problem("file.failed", text), now)
        if not run.sent:
            return None
        text = translate("herald", "%n file(s) were sent.", None, run.sent)
        if run.left_behind:
            more = translate(
                "herald", "%n file(s) or folder(s) were left out.", None, run.left_behind
            )
        elif run.waiting:
            more = translate("herald", "%n file(s) wait for the next run.", None, run.waiting)
        elif run.partial or state.safety is not Safety.SAFE:
            more = translate("herald", "They are safe on the server.")
        else:
            more = translate("herald", "All files are safe on the server.")
        title = translate("herald", "Upload finished")
        return self._say(Message(Kind.FINISHED, title, f"{text} {more}", "overview"), now)

    def _tell_approval(self, state: RunState, now: float) -> Message | None:
        if state.awaited is not None:
            title = translate("herald", "Waiting for approval")
            text = _tell(state.awaited)
        else:
            title = translate("herald", "Approved")
            text = translate("herald", "The server accepts this computer. Uploads can begin.")
        return self._say(Message(Kind.APPROVAL, title, text, "overview"), now)

    def _say(self, message: Message, now: float) -> Message | None:
        """Return the message, unless its kind is switched off or was told a moment ago.

        That it is approved is told however short the wait was.
        """
        kind = message.kind
        subject = (kind, message.title if kind is Kind.APPROVAL else "")
        if (kind and not self._is_wanted(kind)) or now < self._silent_until.get(subject, now):
            return None
        self._silent_until[subject] = now + QUIET
        return message


def _tell(problem: Problem) -> str:
    return words.plain(f"{problem.message} {problem.hint}".strip())
