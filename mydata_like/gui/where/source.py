"""Answers about files; what that needs is imported in the thread that does it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from mydata_like.core.freeing import Freed, Spared
from mydata_like.core.journeys import Journey, Suggestion, Unknown
from mydata_like.engine.workers import CancelFlag
from mydata_like.settings.schema import Settings

MOST = 200  # suggestions


class Answer(NamedTuple):
    """What was found for a text: the very path, and all whose paths have it."""

    text: str
    journey: Journey | None
    suggestions: Sequence[Suggestion]


class Place(NamedTuple):
    """Whose files are asked about: the settings, and their file."""

    settings: Settings
    config: Path | None


class Fates(NamedTuple):
    """What became of all files that were asked for, or would become."""

    freed: Sequence[Freed]
    kept: Sequence[Spared]
    stopped: bool = False  # before all were looked at

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.freed)


@dataclass
class Pace:
    """How far the work has come, for those who look from another thread; and how to stop it."""

    cancel: CancelFlag = field(default_factory=CancelFlag)
    files: int = 0
    bytes: int = 0


def find(place: Place, text: str) -> Answer:
    """Return what is known of a path or a part of one; raises `UploaderError`."""
    from mydata_like.bootstrap import journeys

    found = journeys.look_at(*place, Path(text))
    nowhere = found.unknown in (Unknown.ABSENT, Unknown.OUTSIDE) and not found.path.exists()
    suggestions = journeys.suggest(*place, text, MOST)
    return Answer(text, None if nowhere else found, suggestions)


def look_at(place: Place, path: Path) -> Journey:
    """Return what is known of a path; raises `UploaderError`."""
    from mydata_like.bootstrap import journeys

    return journeys.look_at(*place, path)


def look_into(place: Place, paths: Sequence[Path], pace: Pace) -> Fates:
    """Ask the server what of these files and folders may be deleted; nothing is."""
    from mydata_like import bootstrap

    onlooker = bootstrap.Onlooker(pace.cancel, _nobody)
    with bootstrap.open_freeing(*place, onlooker, delete=False) as freeing:
        return _follow(freeing(paths), pace)


def delete(place: Place, chosen: Sequence[Freed], pace: Pace) -> Fates:
    """Delete exactly these files, as far as they may still be."""
    from mydata_like import bootstrap

    onlooker = bootstrap.Onlooker(pace.cancel, _nobody)
    with bootstrap.open_freeing(*place, onlooker, delete=True) as freeing:
        return _follow(freeing.go_through([file.key for file in chosen]), pace)


def _follow(fates: Iterable[Freed | Spared], pace: Pace) -> Fates:
    freed: list[Freed] = []
    kept: list[Spared] = []
    for fate in fates:
        if isinstance(fate, Freed):
            freed.append(fate)
        else:
            kept.append(fate)
        pace.files += 1
        pace.bytes += fate.size
    return Fates(freed, kept, pace.cancel.is_set())


def _nobody(secret: str) -> None:
    """Nothing that is said here holds the API key."""
