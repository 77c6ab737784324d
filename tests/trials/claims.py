"""Compare the claims of all views with the bytes on the server's disk and its records.

The claims come from the real commands and from the real window (`tests.window_texts`), the truth
from `tests.trials.truth`. No view may claim more than the truth. After a successful run, each view
must show exactly the truth.
"""

import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tests.site import DEADLINE, Ended, Site, finish, kill_group
from tests.trials.truth import Truth

Look = dict[str, Any]  # what `tests.window_texts` has read of the window

ROOT = Path(__file__).parents[2]
ALL = ""  # the subject of a claim about everything
SAMPLE = 3  # files of each kind that are looked up on the page "Where is my data?"

# The statements of a view, from the strongest to the most careful one.
SAFE, REGISTERED, SENT = "safe", "registered", "sent"
VERIFIED_COUNT, AT_RISK, AT_RISK_BYTES = "verified files", "files at risk", "bytes at risk"
CUT_OFF, UNKNOWN, MAY_DELETE = "cut off", "unknown", "may be deleted"
NEVER_SEEN, AWAY, LISTED = "never seen", "data folder away", "listed"

_CUT_OFF = re.compile(
    r"cut off|interrupted|not finished|ended early|unexpectedly|was stopped|did not end", re.I
)
_UNKNOWN = re.compile(
    r"not known|unknown|cannot be (read|found|told)|no run has|ready to start", re.I
)
_ALL_SAFE = re.compile(
    r"^(?!.*\b(?:not|all but|all except)\b).*\ball\b.*\bsafe\b"
    r"|^[\d,]* ?files? (is|are) safe on the server"
    r"|every file .* is on the server|nothing (else )?is wrong|no files were found"
    r"|nothing had to be sent|nothing to upload|^nothing$",
    re.I,
)
_VERIFIED_COUNT = re.compile(
    r"(?<![\d.,])(?<!\bof )(\d[\d,]*) (?:files? )?(?:are |is )?(?:verified|safe)\b", re.I
)
_DATASET_COUNT = re.compile(r"([\d,]+) of ([\d,]+) files? verified")
_ALL_COUNT = re.compile(r"\ball (\d[\d,]*)[^\d]*\bsafe\b", re.I)
_RISK_COUNT = re.compile(
    r"(\d[\d,]*) files?\b.*\b(only (on this computer|here)|at risk)\b",
    re.I,
)
_LEVELS = (SAFE, REGISTERED, SENT)
_NEVER_SEEN = re.compile(r"no run has (come across|sent|found)|was never (seen|found)", re.I)
_AWAY = re.compile(
    r"(data|folder|directory)\b.*"
    r"(cannot be (read|reached|found|opened)|not there|missing|gone|away|not? (be )?available"
    r"|unavailable|does not exist|is empty|no longer)",
    re.I,
)
_RUN_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d  ")
_NUMBER = re.compile(r"(\d[\d,]*)")
_STATES = {"verified": SAFE, "safe": SAFE, "registered": REGISTERED, "sent": SENT, "staged": SENT}
_STATES |= {"repaired": SENT}
_RISK_CARD = "only on this computer"


class Claim(NamedTuple):
    """One statement of a view: `of` is a file's key, a folder's with a slash, or ALL."""

    view: str
    says: str
    of: str = ALL
    number: int = 0
    text: str = ""

    def __str__(self) -> str:
        amount = f" {self.number}" if self.says in (VERIFIED_COUNT, AT_RISK, AT_RISK_BYTES) else ""
        quoted = f": {self.text!r}" if self.text else ""
        return f"{self.view} says {self.says}{amount} of {self.of or 'all'}{quoted}"


# The claims of the commands


@dataclass
class Views:
    """All views of a site; the commands and the window are read in parallel."""

    site: Site
    sources: Sequence[Path] = ()  # dropped folders
    settings: Sequence[str] = ()

    def collect(self, truth: Truth) -> list[Claim]:
        """Return the claims of all views."""
        site, sample = self.site, choose_sample(truth)
        folders = [str(site.data), *map(str, self.sources)]
        texts = [*folders, *map(str, sample[: bool(truth.at_risk)])]
        asked = [
            ["status", "--json"],
            ["status"],
            *(["where", text, "--json"] for text in texts),
        ]
        settings = [*self.settings, "advanced.pause_patience=0"]
        with ThreadPoolExecutor(max_workers=1) as pool:
            window = pool.submit(ask_window, site, sample)
            record, text, *places = site.commands(asked, settings)
            look = window.result()
        # It asks the server, and what it hears changes what the others claim.
        (deletable,) = site.commands([["free", *folders, "--dry-run", "--json"]], settings)
        return [
            *(read_status(record.lines[-1]) if record.code == 0 else ()),
            *read_status_text(text.output),
            *read_free_end(deletable),
            *(claim for place in places if place.lines for claim in read_where(place.lines[-1])),
            *read_look(look, truth),
        ]

    def glance(self, truth: Truth) -> list[Claim]:
        """Return the claims of the window and of `status --json`, which are fast to read."""
        with ThreadPoolExecutor(max_workers=1) as pool:
            window = pool.submit(ask_window, self.site, ())
            claims = self.ask_status()
            return [*claims, *read_look(window.result(), truth)]

    def ask_status(self) -> list[Claim]:
        """Return the claims of `status --json` alone."""
        ended = self.site.command("status", "--json", settings=self.settings)
        return list(read_status(ended.lines[-1])) if ended.code == 0 else []


def choose_sample(truth: Truth) -> list[Path]:
    """Return the paths of a few files of each kind, relative to the data directory if inside."""
    kinds = (truth.at_risk, [file for file in truth.wanted if file.key in truth.safe])
    chosen = [file for kind in kinds for file in kind[:SAMPLE]]
    outside = [file for file in truth.at_risk if file.key.startswith("/")][:SAMPLE]
    names = {file.key: None for file in (*chosen, *outside)} | dict.fromkeys(truth.gone)
    return [Path(name) for name in names]


def ask_window(site: Site, sample: Iterable[Path]) -> Look:
    """Return the texts of the window of a site, opened in a separate process."""
    paths = [str(path if path.is_absolute() else site.data / path) for path in sample]
    ended = finish(_open_window(site, *paths), DEADLINE)
    assert ended.code == 0, ended.complaints[-3000:]
    look: Look = json.loads(ended.output)
    return look


class OpenWindow:
    """The real window in a process that accepts commands; a context manager."""

    def __init__(self, site: Site) -> None:
        self.process = _open_window(site, "--live", stdin=subprocess.PIPE)

    def __enter__(self) -> "OpenWindow":
        return self

    def __exit__(self, *_: object) -> None:
        kill_group(self.process)
        self.process.communicate()

    def tell(self, word: str) -> Any:
        """Send a command (`start`, `stop`, `crash`, `read`), and return the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer, self.process.communicate()[1][-3000:]
        return json.loads(answer)


def _open_window(
    site: Site, *words: str, stdin: int = subprocess.DEVNULL
) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tests.window_texts", str(site.config), *words],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        cwd=ROOT,
        start_new_session=True,
        env=site.environment,
    )


def read_status(record: dict[str, Any]) -> Iterator[Claim]:
    """Yield the claims of `status --json`."""
    view, risk, runs = "status --json", record.get("at_risk") or {}, record.get("runs") or []
    if risk.get("files") is not None:
        yield Claim(view, AT_RISK, number=risk["files"])
        yield Claim(view, AT_RISK_BYTES, number=risk.get("bytes") or 0)
    if not (risk.get("known", True) and risk.get("complete", True)):
        yield Claim(view, UNKNOWN)
    if not runs:  # without a run, nothing is known
        yield Claim(view, UNKNOWN)
        return
    if "verified" in runs[0]:
        yield Claim(view, VERIFIED_COUNT, number=runs[0]["verified"])
    ended = "problem" in runs[0]
    if not ended or runs[0]["problem"] or _CUT_OFF.search(json.dumps(record)):
        yield Claim(view, CUT_OFF)
    elif _is_whole_run(runs[0]):
        yield Claim(view, SAFE, text=f"the last run: {runs[0]['verified']} verified")


def _is_whole_run(run: dict[str, Any]) -> bool:
    """Return whether the totals of a run claim that all of its files are safe."""
    safe = run.get("verified", 0) + run.get("skipped", 0)
    return run.get("found") == safe and not run.get("left_behind")


def read_status_text(text: str) -> Iterator[Claim]:
    """Yield the claims of the text of `status`; of the runs, only the last one is current."""
    lines = text.splitlines()
    runs = [line for line in lines if _RUN_LINE.match(line)]
    return _read_texts("status", [line for line in lines if line not in runs[1:]])


def read_where(record: dict[str, Any]) -> Iterator[Claim]:
    """Yield the claims of `where --json` about files."""
    for file in record.get("files", ()):
        yield Claim("where --json", LISTED, file["path"])
        says = _STATES.get(str(file.get("state", "")))
        if says and file.get("local", "same") != "changed":
            yield Claim("where --json", says, file["path"])


def read_free_end(ended: Ended) -> Iterable[Claim]:
    """Return the claims of `free --dry-run --json`, which may have been refused."""
    refused = not ended.lines or "files" not in ended.lines[-1]
    return [Claim("free --dry-run", UNKNOWN)] if refused else read_free(ended.lines[-1])


def read_free(record: dict[str, Any]) -> Iterator[Claim]:
    """Yield the files that `free --dry-run` would delete."""
    for file in record.get("files", ()):
        if file.get("problem") is None:
            yield Claim("free --dry-run", MAY_DELETE, file["path"])


# The claims of the window


def read_look(look: Look, truth: Truth) -> Iterator[Claim]:
    """Yield the claims of the window from the texts that `tests.window_texts` has read."""
    yield from _read_overview(look["overview"], truth)
    yield from _read_tray(look["tray"])
    yield from _read_texts("status line", look["line"])
    yield from _read_folders(look["folders"])
    yield from _read_transfers(look["transfers"])
    yield from _read_texts("problems", look["problems"]["texts"])
    yield from _read_history(look["history"])
    for path, shown in look["where"].items():
        yield from _read_where_page(path, shown, truth)


def _read_overview(page: dict[str, Any], truth: Truth) -> Iterator[Claim]:
    yield from _read_texts("overview", page["texts"])
    if page["level"] == "good":
        yield Claim("overview icon", SAFE, text="green")
    for group in page["groups"]:
        if _RISK_CARD in [text.casefold() for text in group[:1]]:
            yield from _read_card(group[1:])
        elif any(re.fullmatch(r"[\d,]+ verified", text) for text in group):
            yield from _read_bar(group)
        elif any(_DATASET_COUNT.fullmatch(text) for text in group):
            yield from _read_datasets(group, truth)


def _read_datasets(texts: list[str], truth: Truth) -> Iterator[Claim]:
    """Yield the claims of the rows of datasets: the number of verified files in each."""
    for name, text in itertools.pairwise(texts):
        if match := _DATASET_COUNT.fullmatch(text):
            verified, wanted = (int(number.replace(",", "")) for number in match.groups())
            folder = _find_dataset(name, truth)
            yield Claim("overview datasets", VERIFIED_COUNT, folder, verified, text)
            if verified == wanted and folder != ALL:
                yield Claim("overview datasets", SAFE, folder, text=text)


def _find_dataset(name: str, truth: Truth) -> str:
    """Return the folder of a dataset that is shown with its owner; that of all if it is gone."""
    names = name.split(" · ")
    folder = f"{names[-1]}/{names[0]}/"
    return folder if truth.below(folder) else ALL


def _read_card(texts: list[str]) -> Iterator[Claim]:
    """Yield the claims of the card of files at risk; words instead of a number mean unknown."""
    fact = texts[0] if texts else ""
    number = _find_number(_NUMBER, fact)
    if fact.casefold() == "nothing":
        yield Claim("overview card", AT_RISK, number=0, text=fact)
    elif number is not None and "left out" not in fact:
        yield Claim("overview card", AT_RISK, number=number, text=fact)
    else:
        yield Claim("overview card", UNKNOWN, text=fact)


def _read_bar(texts: list[str]) -> Iterator[Claim]:
    parts = {text.partition(" ")[2]: _find_number(_NUMBER, text) or 0 for text in texts}
    others = sum(count for word, count in parts.items() if word not in ("verified", "skipped"))
    yield Claim("overview bar", VERIFIED_COUNT, number=parts["verified"])
    if parts["verified"] and not others:
        yield Claim("overview bar", SAFE, text="all green")


def _read_tray(tray: dict[str, str]) -> Iterator[Claim]:
    yield from _read_texts("tray", [tray["tip"]])
    unknown = _UNKNOWN.search(tray["tip"]) is not None
    if tray["level"] == "idle" and not unknown:
        yield Claim("tray icon", SAFE, text="green")


def _read_folders(page: dict[str, Any]) -> Iterator[Claim]:
    rows = [row for table in page["tables"] if table["name"] for row in table["rows"]]
    yield from _read_texts("folders", page["texts"])
    for number, row in enumerate(rows):
        for folder in _folders_of(rows, number):
            yield from _read_folder(f"{folder}/", row["cells"])


def _folders_of(rows: list[dict[str, Any]], number: int) -> list[str]:
    """Return the folder of a row; for an owner or experiment, the only folder below it, if any."""
    if rows[number]["path"] is not None:
        return [rows[number]["path"]]
    level = len(rows[number]["above"])
    below = []
    for row in rows[number + 1 :]:
        if len(row["above"]) <= level:
            break
        below.append(row)
    paths = [row["path"] for row in below if row["path"] is not None]
    return [os.path.commonpath(paths)] if len(paths) == 1 else []


def _read_folder(folder: str, cells: dict[str, str]) -> Iterator[Claim]:
    """Yield the claims of a row: its state, and the number of verified files."""
    view, state = "folders", cells.get("State", "")
    if says := _STATES.get(state.casefold()):
        yield Claim(view, says, folder, text=state)
    progress = cells.get("Verified", "")
    if match := re.fullmatch(r"([\d,]+) of ([\d,]+)", progress):
        verified, wanted = (int(text.replace(",", "")) for text in match.groups())
        yield Claim(view, VERIFIED_COUNT, folder, verified, progress)
        if verified == wanted:
            yield Claim(view, SAFE, folder, text=progress)


def _read_transfers(page: dict[str, Any]) -> Iterator[Claim]:
    for table in page["tables"]:
        for row in table["rows"] if table["name"] == "Files" else ():
            cells = row["cells"]
            key = "/".join(filter(None, (cells.get("Folder"), cells.get("Name"))))
            if says := _STATES.get(cells.get("State", "").casefold()):
                yield Claim("transfers", says, key, text=cells["State"])


def _read_history(page: dict[str, Any]) -> Iterator[Claim]:
    for table in page["tables"]:
        for number, row in enumerate(table["rows"] if table["name"] == "Runs" else ()):
            outcome = row["cells"].get("Outcome", "")
            if number == 0:
                yield from _read_texts("history", [outcome])
            elif _find_number(_ALL_COUNT, outcome) == 0:  # earlier runs are not about the present
                yield Claim("history", SAFE, text=outcome)


_WHERE_SAFE = re.compile(
    r"^(it was|all of it was) safe|you may delete|server had a verified copy|verified: safe"
    r"|^(it is|all of it is) safe",
    re.I,
)


def _read_where_page(path: str, shown: dict[str, Any], truth: Truth) -> Iterator[Claim]:
    keys = {file.key for file in truth.files} | truth.gone
    plain = Path(path).as_posix()
    key = next((key for key in keys if path == key or plain.endswith(f"/{key}")), path)
    yield Claim("where page", LISTED, key)
    for says, pattern in ((SAFE, _WHERE_SAFE), (NEVER_SEEN, _NEVER_SEEN)):
        if found := list(filter(pattern.search, shown["texts"])):
            yield Claim("where page", says, key, text=" ".join(found))


def _read_texts(view: str, texts: Iterable[str]) -> Iterator[Claim]:
    """Yield the claims of sentences about everything."""
    for text in texts:
        if _ALL_SAFE.search(text):
            yield Claim(view, SAFE, text=text)
        for pattern in (_VERIFIED_COUNT, _ALL_COUNT):
            if (count := _find_number(pattern, text)) is not None:
                yield Claim(view, VERIFIED_COUNT, number=count, text=text)
        if (count := _find_number(_RISK_COUNT, text)) is not None:
            yield Claim(view, AT_RISK, number=count, text=text)
        for pattern, says in ((_CUT_OFF, CUT_OFF), (_UNKNOWN, UNKNOWN), (_AWAY, AWAY)):
            if pattern.search(text):
                yield Claim(view, says, text=text)


def _find_number(pattern: re.Pattern[str], text: str) -> int | None:
    match = pattern.search(text)
    return int(match[1].replace(",", "")) if match else None


# The comparison


def find_false_claims(claims: Iterable[Claim], truth: Truth, *, unseen: bool = False) -> list[str]:
    """Return the claims that exceed the truth; `unseen` says that a run was cut off suddenly.

    Then the last files it found may be unknown if the view shows that the run was cut off. The
    numbers of a view that shows that something is unknown are not checked.
    """
    made = list(claims)
    careful = {_family(claim) for claim in made if claim.says == UNKNOWN}
    if unseen:
        careful |= {_family(claim) for claim in made if claim.says == CUT_OFF}
    return sorted({str(claim) for claim in made if not _holds(claim, truth, careful)})


def _family(claim: Claim) -> str:
    """Return the page or command of a claim, the same for all of its parts."""
    return claim.view.removesuffix(" icon").removesuffix(" card").removesuffix(" bar")


def _holds(claim: Claim, truth: Truth, careful: Collection[str]) -> bool:
    match claim.says:
        case "files at risk" | "bytes at risk":
            return _family(claim) in careful or claim.number >= _least(claim, truth)
        case "verified files":
            return _holds_count(claim, truth)
        case "may be deleted":
            return claim.of in truth.safe
        case _:
            return claim.says not in _LEVELS or _holds_state(claim, truth)


def _least(claim: Claim, truth: Truth) -> int:
    """Return the smallest true number of files or bytes at risk."""
    known = [file.size for file in truth.at_risk if file.key not in truth.excused]
    return len(known) if claim.says == AT_RISK else sum(known)


def _holds_count(claim: Claim, truth: Truth) -> bool:
    if claim.of == ALL:
        return claim.number <= truth.stored + len(truth.excused)
    good = truth.safe | truth.excused
    gone = sum(key.startswith(claim.of) and key in good for key in truth.gone)
    return claim.number <= gone + sum(file.key in good for file in truth.below(claim.of))


def _holds_state(claim: Claim, truth: Truth) -> bool:
    there = {SAFE: truth.safe, REGISTERED: truth.registered, SENT: truth.sent}[claim.says]
    good = there | truth.excused
    if claim.of != ALL and not claim.of.endswith("/"):
        return claim.of in good
    files = truth.below(claim.of)
    return bool(files) and all(file.key in good for file in files)


def find_disagreements(claims: Iterable[Claim], truth: Truth) -> list[str]:
    """Return the deviations of all views from the truth after a successful run."""
    made = list(claims)
    wrong = find_false_claims(made, truth)
    for claim in made:
        if claim.says == AT_RISK and claim.number not in _counts(truth):
            wrong.append(f"{claim}, and there are {len(truth.at_risk)}")
        if claim.says == UNKNOWN and claim.view == "overview card":
            wrong.append(f"{claim}, although all is known")
    return sorted({*wrong, *_find_silence(made, truth)})


def _counts(truth: Truth) -> range:
    """Return the valid numbers of files at risk; files lost on this computer may count or not."""
    return range(len(truth.at_risk), len(truth.at_risk) + len(truth.gone - truth.safe) + 1)


def find_forgotten(claims: Iterable[Claim], truth: Truth) -> list[str]:
    """Return the files that a run has found and that views of single files do not show."""
    made = list(claims)
    listed = {claim.of for claim in made if (claim.view, claim.says) == ("where --json", LISTED)}
    wrong = [
        f"where --json does not know {file.key}" for file in truth.wanted if file.key not in listed
    ]
    keys = {file.key for file in truth.wanted}
    wrong += [str(claim) for claim in made if claim.says == NEVER_SEEN and claim.of in keys]
    return sorted(set(wrong))


_SAYING_ALL = ("overview", "overview icon", "tray", "tray icon", "history")
_SAYING_EACH = {"where --json": SAFE, "transfers": SAFE, "free --dry-run": MAY_DELETE}


def _find_silence(claims: list[Claim], truth: Truth) -> Iterator[str]:
    """Yield true statements that a view does not show."""
    saying = {claim.view for claim in claims if claim.says == SAFE and claim.of == ALL}
    if len(_counts(truth)) == 1 and not truth.at_risk:
        yield from (
            f"{view} does not say that all is safe" for view in _SAYING_ALL if view not in saying
        )
    careful = {claim.view for claim in claims if claim.says == UNKNOWN}
    for view, says in _SAYING_EACH.items():
        if view in careful:
            continue
        shown = {claim.of for claim in claims if (claim.view, claim.says) == (view, says)}
        for file in truth.wanted:
            if file.key in truth.safe and file.key not in shown:
                yield f"{view} does not say {says} of {file.key}"
    asked = {claim.of for claim in claims if (claim.view, claim.says) == ("where page", LISTED)}
    safe = {claim.of for claim in claims if (claim.view, claim.says) == ("where page", SAFE)}
    # A file deleted here before its verification was seen is never shown as safe.
    here = truth.safe - truth.gone
    yield from (f"where page does not say safe of {key}" for key in (asked & here) - safe)
    if not any(claim.says == AT_RISK and claim.view == "status --json" for claim in claims):
        yield "status --json does not say how many files are at risk"
