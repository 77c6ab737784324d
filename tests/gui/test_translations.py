"""Every text of the window can be read in German, and counts read well in English."""

import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PySide6.QtCore import QCoreApplication, QLocale

from mydata_like.core.resources import find_resources
from tests.gui.texts import find_forgotten, find_texts

FOLDER = find_resources() / "translations"
MAKE = "run `make translations`, then translate what is new"
PLACEHOLDER = re.compile(r"%L?n|%L?\d|\{\w*\}")


@dataclass(frozen=True)
class Message:
    context: str
    source: str
    forms: tuple[str, ...]
    finished: bool

    @property
    def key(self) -> tuple[str, str]:
        return self.context, self.source


def read_messages(language: str) -> list[Message]:
    tree = ElementTree.parse(FOLDER / f"mydata_like_{language}.ts")
    return [
        _read_message(context.findtext("name") or "", message)
        for context in tree.iter("context")
        for message in context.iter("message")
    ]


def _read_message(context: str, message: ElementTree.Element) -> Message:
    translation = message.find("translation")
    assert translation is not None
    forms = [form.text or "" for form in translation.iter("numerusform")]
    return Message(
        context,
        message.findtext("source") or "",
        tuple(forms or [translation.text or ""]),
        "type" not in translation.attrib,
    )


def test_every_text_for_the_user_is_translatable():
    assert find_forgotten() == []


def test_every_text_of_the_source_is_among_the_translations():
    known = {message.key for message in read_messages("de")}
    missing = {
        text.place: text.source for text in find_texts() if (text.context, text.source) not in known
    }
    assert missing == {}, MAKE


def test_no_translation_is_of_a_text_that_has_gone():
    used = {(text.context, text.source) for text in find_texts()}
    gone = [message.key for message in read_messages("de") if message.key not in used]
    assert gone == [], MAKE


def test_every_count_has_its_english_forms():
    known = {message.key for message in read_messages("en")}
    counted = {(text.context, text.source) for text in find_texts() if text.counted}
    assert counted - known == set(), MAKE


@pytest.mark.parametrize("language", ["en", "de"])
def test_every_translation_is_finished(language: str):
    open_ends = [
        message.source
        for message in read_messages(language)
        if not message.finished or not all(message.forms)
    ]
    assert open_ends == []


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_translation_says_no_less_than_its_source(language: str):
    different = [
        (message.source, form)
        for message in read_messages(language)
        for form in message.forms
        if _placeholders(form) - Counter() != _placeholders(message.source)
        and not _is_singular(message, form)
    ]
    assert different == []


def _placeholders(text: str) -> Counter[str]:
    return Counter(PLACEHOLDER.findall(text))


def _is_singular(message: Message, form: str) -> bool:
    """The form of one thing may say "the file" instead of "1 file"."""
    wanted = _placeholders(message.source)
    return form is message.forms[0] and wanted - _placeholders(form) in (
        Counter(["%n"]),
        Counter(["%Ln"]),
    )


def test_a_german_text_has_a_key_where_the_english_one_has():
    mnemonic = re.compile(r"&(?!&)\w")
    different = [
        message.source
        for message in read_messages("de")
        for form in message.forms
        if len(mnemonic.findall(message.source)) != len(mnemonic.findall(form))
    ]
    assert different == []


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_program_carries_the_translations_as_they_are_now(language: str, tmp_path: Path):
    name = f"mydata_like_{language}"
    fresh = tmp_path / "fresh.qm"
    release = Path(sys.executable).with_name("pyside6-lrelease")
    subprocess.run(
        [release, "-silent", FOLDER / f"{name}.ts", "-qm", fresh], check=True, capture_output=True
    )
    assert fresh.read_bytes() == (FOLDER / f"{name}.qm").read_bytes(), MAKE


def test_german_is_spoken_when_it_was_chosen(spoken):
    assert spoken("de") == "de"
    assert QCoreApplication.translate("QPlatformTheme", "Cancel") == "Abbrechen"
    assert QLocale().toString(12481) == "12.481"


def test_the_system_decides_without_a_choice(spoken):
    assert spoken("system") in {"en", "de"}
