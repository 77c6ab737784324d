"""Sentences of the engine are shown in German, with their arguments as they were."""

import json
import re

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QTranslator

from mydata_like.core.errors import Problem
from mydata_like.core.events import Notice, event_record, parse_event
from mydata_like.core.formatting import format_json
from mydata_like.core.parsing import parse_json
from mydata_like.core.resources import find_resources
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.engine_translator import EngineTranslator, SentenceTemplate
from mydata_like.settings.fields import InvalidSettingsError, SettingProblem

FILE = find_resources() / "translations" / "engine.json"
TEMPLATES = json.loads(FILE.read_text("utf-8"))
WITH_ARGUMENTS = sorted(text for text in TEMPLATES if "%1" in text)
PARTS = {part for text in TEMPLATES for part in re.split(r"%\d", text) if part.count(" ") > 2}

# Arguments as they are, and as bad as they can be: with words of other sentences in them.
anything = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), min_size=1, max_size=60)
paths = st.lists(anything, min_size=1, max_size=4).map("/".join)
traps = st.tuples(st.sampled_from(["/data/", "x "]), st.sampled_from(sorted(PARTS)), anything)


@pytest.fixture
def german(spoken):
    spoken("de")


def fill(template: str, arguments: list[str]) -> str:
    return re.sub(r"%(\d)", lambda mark: arguments[int(mark[1]) - 1], template)


@pytest.mark.parametrize(
    ("english", "german_text"),
    [
        ("The staging area is full.", "Der Annahmebereich ist voll."),
        (
            "The file cannot be read: permission denied.",
            "Die Datei kann nicht gelesen werden: Zugriff verweigert.",
        ),
        (
            "/data/a b/100%1.txt cannot be read: Permission denied.",
            "/data/a b/100%1.txt kann nicht gelesen werden: Zugriff verweigert.",
        ),
        (
            "Check the server address. The run tries again automatically, 6 seconds later at most.",
            "Prüfen Sie die Serveradresse. Der Lauf versucht es automatisch wieder, spätestens "
            "nach 6 Sekunden.",
        ),
        ("The address is not a web address.", "Die Adresse ist keine Webadresse."),
        (
            "/etc/a.toml, line 3: server.url must begin with https://",
            "/etc/a.toml, line 3: server.url muss mit https:// beginnen",
        ),
        (
            "a.toml: is not TOML: nested too deeply",
            "a.toml: ist kein TOML: zu tief verschachtelt",
        ),
        (
            "/etc/The staging area is full. is not a regular file.",
            "/etc/The staging area is full. ist keine gewöhnliche Datei.",
        ),
        ("Kaputt ist's.", "Kaputt ist's."),
        ("", ""),
    ],
    ids=[
        "whole",
        "nested",
        "path",
        "hint",
        "reason",
        "setting",
        "file",
        "trap",
        "unknown",
        "empty",
    ],
)
@pytest.mark.usefixtures("german")
def test_a_sentence_of_the_engine_is_shown_in_german(english, german_text):
    assert texts.engine_text(english) == german_text


@pytest.mark.usefixtures("german")
@pytest.mark.parametrize(
    "ambiguous",
    [
        "a cannot be read: b cannot be read: c.",  # where does the path end?
        "x cannot be used. y is not a regular file.",  # which of two sentences is it?
    ],
)
def test_a_sentence_that_can_be_read_in_two_ways_stays_english(ambiguous):
    assert texts.engine_text(ambiguous) == ambiguous


@pytest.mark.usefixtures("german")
def test_each_of_several_errors_in_settings_is_translated():
    error = InvalidSettingsError(
        [SettingProblem("server.url", "must begin with https://"), SettingProblem("x.y", "odd")]
    )

    assert texts.engine_text(error.message) == r"server.url muss mit https:// beginnen\nx.y odd"


@pytest.mark.usefixtures("german")
def test_hidden_characters_of_arguments_are_shown():
    shown = texts.engine_text("a\x1b[31m.txt no longer exists.")

    assert shown == r"a\x1b[31m.txt gibt es nicht mehr."


@pytest.mark.usefixtures("german")
def test_message_and_hint_of_an_event_from_another_process_are_translated():
    problem = Problem("staging.full", "The staging area is full.", "The next run sends it.")
    line = format_json(event_record(Notice(problem=problem)))

    event = parse_event(parse_json(line))

    assert texts.error_text(event.problem) == (
        "Der Annahmebereich ist voll.\nDer nächste Lauf sendet sie."
    )


@pytest.mark.usefixtures("german")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(WITH_ARGUMENTS), st.lists(anything | paths, min_size=9, max_size=9))
@example("%1 is in use by another program, which lets no other read it.", ["%1 %2 %"] * 9)
def test_no_argument_is_lost_or_changed(template, arguments):
    sentence = fill(template, arguments)

    shown = texts.engine_text(sentence)

    count = len(set(re.findall(r"%\d", template)))
    assert all(argument in shown for argument in arguments[:count])


@pytest.mark.usefixtures("german")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(st.sampled_from(WITH_ARGUMENTS), st.lists(traps.map("".join), min_size=9, max_size=9))
def test_words_of_the_program_in_an_argument_do_not_mix_up_the_others(template, arguments):
    assume(not TEMPLATES[template])
    sentence = fill(template, arguments)

    shown = texts.engine_text(sentence)

    translated = texts.look_up("engine", template)
    assert shown in (sentence, fill(translated, arguments))


@pytest.mark.usefixtures("german")
def test_every_template_is_recognized_with_plain_arguments():
    arguments = [f"x{number}" for number in range(1, 10)]

    shown = {text: texts.engine_text(fill(text, arguments)) for text in TEMPLATES}

    wanted = {text: fill(texts.look_up("engine", text), arguments) for text in TEMPLATES}
    assert shown == wanted


def test_a_long_sentence_with_many_ways_to_divide_it_takes_no_time():
    template = SentenceTemplate.of("%1 a %2 a %3 a %4.", "")

    assert len(template.matches("x a " * 5000 + "y.")) == 2
    assert template.matches("x a " * 5000 + "y") == []


@pytest.mark.parametrize(("language", "number"), [("en", 0), ("de", 1)])
def test_only_other_languages_than_english_need_a_translator(spoken, qapp, language, number):
    spoken(language)

    found = qapp.findChildren(EngineTranslator)

    assert len(found) == number


def test_the_templates_are_read_when_the_first_sentence_is_shown(spoken, qapp):
    spoken("de")
    (translator,) = qapp.findChildren(EngineTranslator)
    assert texts.plain("x") == "x"
    assert texts.count(1000) == "1.000"
    assert "_given" not in vars(translator)

    texts.engine_text("a.txt no longer exists.")

    assert "_given" in vars(translator)


def test_without_the_translations_a_sentence_stays_english(qapp):
    translator: QTranslator = EngineTranslator(FILE, qapp)
    qapp.installTranslator(translator)
    try:
        assert texts.engine_text("a.txt no longer exists.") == "a.txt no longer exists."
    finally:
        qapp.removeTranslator(translator)
        translator.deleteLater()


@pytest.mark.usefixtures("german")
def test_a_problem_without_a_hint_has_none_in_german():
    assert texts.problem_text(Problem("x", "The connection broke.")) == (
        "Die Verbindung ist abgebrochen."
    )
