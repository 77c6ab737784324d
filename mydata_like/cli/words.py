"""The usual words of `mydata-like run`, read without the library that knows all words.

Whoever starts runs from a schedule or a script says no others, and does not wait for it.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Final, NoReturn

from mydata_like.cli.output import Shape
from mydata_like.cli.running import RunArguments, carry_out_alone

WITH_VALUE: Final = ("--config", "--set")
SHAPES: Final = MappingProxyType(
    {
        frozenset[str](): Shape.TEXT,
        frozenset({"--json"}): Shape.JSON,
        frozenset({"--events"}): Shape.EVENTS,
        frozenset({"--events", "--brief"}): Shape.BRIEF,
    }
)


def find_usual_run(words: Sequence[str]) -> Callable[[], NoReturn] | None:
    """Return what carries out a run of the usual words, None for all others."""
    arguments = read_words(words)
    return partial(carry_out_alone, arguments) if arguments else None


def read_words(words: Sequence[str]) -> RunArguments | None:
    """Return the run that words ask for; None where they are not exactly the usual ones."""
    values: dict[str, list[str]] = {word: [] for word in WITH_VALUE}
    flags = set()
    left = iter(words)
    for word in left:
        if word not in values:
            flags.add(word)
            continue
        value = next(left, "")
        if not value or value.startswith("-"):
            return None
        values[word].append(value)
    shape = SHAPES.get(frozenset(flags))
    if shape is None:
        return None
    config = Path(values["--config"][-1]) if values["--config"] else None
    return RunArguments(config, tuple(values["--set"]), shape)
