"""Translates the sentences of the engine, which it finds by their templates."""

import re
from collections.abc import Collection
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple, Self

from PySide6.QtCore import QCoreApplication, QObject, QTranslator

from mydata_like.core.parsing import parse_json

CONTEXT: Final = "engine"  # of the translations of the templates
look_up = QCoreApplication.translate

_PLACEHOLDER: Final = re.compile(r"%(\d)")
# An error in a setting: where it is, the key, and what is wrong with the value or the file.
_SETTING: Final = re.compile(r"((?:.+?: )?[a-z]+\.[a-z0-9_]+|.+?:(?= is | needs )) (.+)")
_MOST_KEPT: Final = 5_000  # sentences whose translations are kept

Span = tuple[int, int]  # the start and the end of an argument


class SentenceMatch(NamedTuple):
    """A template with the places of its arguments in a sentence."""

    template: "SentenceTemplate"
    spans: tuple[Span, ...]

    def is_certain(self, other: Self, known: Collection[int]) -> bool:
        """Return whether this match is right although the other, shorter one is possible too.

        It is not if an argument of this one contains words of the other one, unless the argument is
        a sentence of the engine itself: one of the numbers `known`.
        """
        return all(
            number in known or any(first <= start and end <= last for first, last in other.spans)
            for number, (start, end) in enumerate(self.spans, 1)
        )


class SentenceTemplate(NamedTuple):
    """A sentence with %1, %2 and so on: its parts between them, and which may be sentences too."""

    text: str
    parts: tuple[str, ...]
    nested: frozenset[int]

    @classmethod
    def of(cls, text: str, nested: str) -> Self:
        """Parse a template; `nested` are the digits of the arguments that may be sentences."""
        return cls(text, tuple(_PLACEHOLDER.split(text)[::2]), frozenset(map(int, nested)))

    @property
    def weight(self) -> int:
        """The number of its own characters."""
        return sum(map(len, self.parts))

    def matches(self, sentence: str) -> list[SentenceMatch]:
        """Return how a sentence may have been made: with its inner parts as early as possible.

        If they can be later, too, the sentence is ambiguous, and the latest places follow.
        """
        head, *inner, tail = self.parts
        if not (sentence.startswith(head) and sentence.endswith(tail)):
            return []
        start, end = len(head), len(sentence) - len(tail)
        earliest: list[int] = []
        latest: list[int] = []
        at = start
        for part in inner:  # no argument is empty
            at = sentence.find(part, at + 1, end - 1)
            if at < 0:
                return []
            earliest.append(at)
            at += len(part)
        if at >= end:
            return []
        at = end
        for part in reversed(inner):
            at = sentence.rfind(part, start + 1, at - 1)
            latest.insert(0, at)
        found = []
        for places in (earliest, latest)[: 1 + (earliest != latest)]:
            ends = (place + len(part) for place, part in zip(places, inner, strict=True))
            found.append(
                SentenceMatch(self, tuple(zip([start, *ends], [*places, end], strict=True)))
            )
        return found


class EngineTranslator(QTranslator):
    """Translates finished English sentences of the engine; their arguments stay unchanged.

    The translations of the templates are those of `CONTEXT` in another translator. Install that one
    later than this one: Qt then asks this one only for texts that the other one lacks. What matches
    no template, or matches in more than one way, is not translated.
    """

    def __init__(self, file: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._file = file
        self._kept: dict[str, str] = {}

    def isEmpty(self) -> bool:
        return False

    def translate(
        self, context: str, source: str, disambiguation: str | None = None, n: int = -1
    ) -> str | None:
        if context != CONTEXT or source in self._given:
            return None
        if source not in self._kept:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[source] = self._translate(source)
        return self._kept[source]

    @cached_property
    def _given(self) -> dict[str, str]:
        """All templates, each with the numbers of its nested arguments."""
        given: dict[str, str] = parse_json(self._file.read_bytes())
        return given

    @cached_property
    def _templates(self) -> list[tuple[str, SentenceTemplate]]:
        """All templates with arguments after their longest parts; first those with most words."""
        templates = [SentenceTemplate.of(*it) for it in self._given.items() if "%1" in it[0]]
        templates.sort(key=lambda template: template.weight, reverse=True)
        return [(max(template.parts, key=len), template) for template in templates]

    def _translate(self, sentence: str) -> str:
        likely = [template for part, template in self._templates if part in sentence]
        found = [matches for template in likely if (matches := template.matches(sentence))]
        if found:
            match = self._choose(sentence, found)
            return self._fill(sentence, match) if match else sentence
        setting = _SETTING.fullmatch(sentence)
        return f"{setting[1]} {look_up(CONTEXT, setting[2])}" if setting else sentence

    def _choose(self, sentence: str, found: list[list[SentenceMatch]]) -> SentenceMatch | None:
        """Return how a sentence was made, of all possible ways; None if that is ambiguous."""
        if len(found[0]) > 1:
            return None
        [match], *more = found
        others = [other for matches in more for other in matches]
        weight = match.template.weight
        known = self._find_known(sentence, match) if others else frozenset()
        certain = all(
            other.template.weight < weight and match.is_certain(other, known) for other in others
        )
        return match if certain else None

    def _find_known(self, sentence: str, match: SentenceMatch) -> frozenset[int]:
        """Return the numbers of the arguments that are sentences of the engine."""
        words = {
            number: sentence[start:end]
            for number, (start, end) in enumerate(match.spans, 1)
            if number in match.template.nested
        }
        return frozenset(it for it, word in words.items() if look_up(CONTEXT, word) != word)

    def _fill(self, sentence: str, match: SentenceMatch) -> str:
        """Put the arguments into the translation of the template."""
        text = look_up(CONTEXT, match.template.text)
        if text == match.template.text:
            return sentence
        words = [sentence[start:end] for start, end in match.spans]
        for number in match.template.nested:
            words[number - 1] = look_up(CONTEXT, words[number - 1])
        return _PLACEHOLDER.sub(lambda mark: words[int(mark[1]) - 1], text)
