"""Every sentence of the engine is known to the window, which can translate it."""

from pathlib import Path

import pytest

from tests.engine_sentences import ROOT, Argument, Sources, format_templates, is_sentence

FILE = ROOT.parent / "resources" / "translations" / "engine.json"

# Expressions that are no sentence of their own, by what they pass on.
PASSED_ON = {
    # sentences that are found where they are written, as `_describe_full` or another error
    *("app.connection:warning", "app.settings_service:warning"),
    *("ssh.capabilities:dialing.RENEW", "transfer.s3.s3_errors:rule.message.format(**fields)"),
    "app.connection_test:note",  # of a place
    "app.copy_service:message",  # of a held file, in other words
    # of a destination, in other words
    *("transfer.folder.received_files:message", "transfer.folder.received_files:hint"),
    # errors in settings, which have their own sentences
    *("app.mydata_import:[*file.problems, *problems]", "app.settings_service:added"),
    *("settings.fields:problems", "settings.layers:problems", "settings.values:'; '.join(wrong)"),
    *("settings.fields:text", "settings.schema:text"),
    "settings.fields:'\\n'.join((str(problem) for problem in problems))",
    "settings.layers:[SettingProblem(key, unknown_key(key, settings_by_key()))]",
    "settings.settings_file:[SettingProblem('', error.message, origin, error.line)]",
    # values that are no sentences
    *("settings.mydata_cfg:lowest if number < lowest else highest", "ssh.capabilities:missing"),
    *(
        "transfer.ssh.single_file:finished",
        "transfer.ssh.single_file:finish_refused(self._stream, error)",
    ),
    # texts of the window, translated there
    "gui.pages.problems_page:self.tr('Choose whether to replace the copies or to keep them: for "
    "the selected files, or else for all that are listed.')",
    "gui.pages.problems_page:self.tr('Nothing is lost: the next run continues.')",
    "gui.pages.problems_page:self.tr('The last run was interrupted: the program or the computer "
    "stopped.')",
    "gui.tray.notifications:text",
}


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sources() -> Sources:
    return Sources()


def read(folder: Path, **modules: str) -> dict[str, str]:
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    return Sources(folder).list_templates()


def test_the_list_of_sentences_is_up_to_date():
    known, fresh = FILE.read_text("utf-8"), format_templates()

    differing = set(known.splitlines()) ^ set(fresh.splitlines())
    assert differing == set(), "run `make translations`"
    assert known == fresh


def test_every_problem_and_error_has_a_sentence_that_the_window_knows(sources):
    unknown = {
        f"{place.scope.module.name}:{place.text}"
        for place in sources.find_sentences()
        if not any(map(is_sentence, sources.templates(place)))
        and not all(passes_on(form) for form in sources.templates(place))
    }
    assert unknown == PASSED_ON


def passes_on(form) -> bool:
    """Return whether a text is empty or that of another problem."""
    return form in (("",), (Argument(nested=True),))


def test_every_way_to_put_a_sentence_together_is_found(tmp_path):
    text = """
from mydata_like.other import describe

HINT = "Check it."
class OwnError(UploaderError): ...

def report(path, count, error, why):
    what = "1 file is" if count == 1 else f"{count} files are"
    raise OwnError(f"{path} has {what} missing: {error.strerror}.", hint=HINT)

def refuse(reason):
    return Problem("x", f"It was refused: {reason}.", describe(reason).strip())

def use():
    refuse("it is too large")
    refuse(reason="it " + "is old")
    message, hint = "The first part.", ""
    message += " The second part."
    Problem("y", message, {1: "Wait a moment."}.get(2, "Do nothing."))
"""
    other = 'def describe(what):\n    return f"Ask about {what}." if what else "Ask somebody."\n'

    assert read(tmp_path, one=text, other=other) == {
        "%1 has %2 files are missing: %3.": "3",
        "%1 has 1 file is missing: %2.": "2",
        "Ask about it is old.": "",
        "Ask about it is too large.": "",
        "Ask somebody.": "",
        "Check it.": "",
        "Do nothing.": "",
        "It was refused: it is old.": "",
        "It was refused: it is too large.": "",
        "The first part.": "",
        "The first part. The second part.": "",
        "Wait a moment.": "",
    }
