"""What is wrong with settings, in sentences that name the key and the place."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mydata_like.core.errors import SettingsError


class SettingProblem(NamedTuple):
    """One thing that is wrong with one setting.

    `key` is dotted, or empty where a whole file is at fault; `origin` is the file, the
    environment variable or the option it came from; `line` is 0 where there are no lines.
    """

    key: str
    message: str
    origin: str = ""
    line: int = 0

    def __str__(self) -> str:
        place = f"{self.origin}, line {self.line}" if self.line else self.origin
        return ": ".join(part for part in (place, f"{self.key} {self.message}".strip()) if part)


class InvalidSettingsError(SettingsError):
    """Settings are wrong; `problems` lists all that is wrong with them."""

    def __init__(self, problems: Sequence[SettingProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__(
            "\n".join(str(problem) for problem in problems),
            hint="Correct the settings; `mydata-like settings check` looks at them again.",
        )


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Return the sentence for an unknown key, with the nearest known one."""
    if key.rpartition(".")[2].lower() in ("api_key", "apikey", "password", "token"):
        return "is a secret and not a setting: store it with `mydata-like settings set-key`"
    nearest = find_nearest(key, known)
    return f"is no setting; did you mean {nearest}?" if nearest else "is no setting"


def find_nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that a mistyped one was most likely meant to be."""
    by_folded: Mapping[str, str] = {entry.lower(): entry for entry in known}
    close = difflib.get_close_matches(word.lower()[:200], list(by_folded), n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None
