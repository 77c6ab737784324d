"""The program can be used with keys alone, by voice, by touch, with large text, in every theme."""

from collections.abc import Callable

import pytest
from PySide6.QtCore import QLocale, QSize, QTranslator
from PySide6.QtWidgets import QApplication, QWidget

from mydata_like.core.model import HELD_FILES
from mydata_like.gui.base import AppContext
from mydata_like.gui.pages.problems_page import ProblemsPage
from mydata_like.gui.run_state import Phase
from mydata_like.gui.theme import style
from mydata_like.gui.theme_settings import set_language
from mydata_like.gui.window import MainWindow, list_pages
from tests.gui import audit
from tests.gui.poses import move, pose
from tests.gui.pseudo import PseudoTranslator
from tests.gui.scenes import Moment, Scene, Stage, list_scenes
from tests.gui.scripted import run_that

SMALL, USUAL = QSize(1024, 700), QSize(1366, 768)
LAYERS = 3
Check = Callable[[QWidget], list[str]]


@pytest.fixture
def contexts(open_context, site, tmp_path, qtbot):
    """A context after a first run, and one that is not set up."""
    (site.data / "notes.txt").write_text("belongs to no dataset")
    after, first = open_context(site.config), open_context(tmp_path / "nowhere.toml")
    qtbot.waitUntil(lambda: after.controller.state.phase == "idle", timeout=60_000)
    after.controller.start()
    qtbot.waitUntil(lambda: bool(after.controller.state.last), timeout=60_000)
    qtbot.waitUntil(lambda: first.controller.state.phase == "unset", timeout=60_000)
    return dict.fromkeys(Moment, after) | {Moment.FIRST_START: first}


@pytest.fixture
def look(contexts, qapp, qtbot):
    """Return what the checks complain of in every scene, by scene."""
    style.apply(qapp, "light")
    font = qapp.font()

    def look_at(checks: list[Check], size: QSize) -> dict[str, list[str]]:
        controller = contexts[Moment.AFTER].controller
        last = controller.state.last
        stages = {moment: open_stage(context, size) for moment, context in contexts.items()}
        found = {}
        for scene in list_scenes():
            pose(controller, scene.moment, last)
            found[scene.name] = audit_scene(qtbot, scene, stages[scene.moment], checks, size)
        pose(controller, Moment.AFTER, last)
        for stage in stages.values():
            stage.window.close()
        return {name: complaints for name, complaints in found.items() if complaints}

    def open_stage(context: AppContext, size: QSize) -> Stage:
        window = MainWindow(context)
        qtbot.addWidget(window)
        window.resize(size)
        window.show()
        return Stage(window, context)

    yield look_at
    qapp.setFont(font)
    style.apply(qapp, "light")


@pytest.fixture(autouse=True)
def english(qapp):
    """Return to English after a test."""
    yield
    for translator in qapp.findChildren(QTranslator):
        qapp.removeTranslator(translator)
    QLocale.setDefault(QLocale.c())


def audit_scene(qtbot, scene: Scene, stage: Stage, checks: list[Check], size: QSize) -> list[str]:
    shown = scene.open(stage)
    move(stage.context.controller)
    qtbot.waitUntil(lambda: not stage.context.tasks.busy, timeout=60_000)
    complaints = examine(shown, checks, size)
    if shown is not stage.window:
        shown.close()
    return complaints


def examine(shown: QWidget, checks: list[Check], size: QSize) -> list[str]:
    shown.resize(shown.size().boundedTo(size))
    for _ in range(LAYERS):  # texts that have just come are laid out, one layout after the other
        QApplication.processEvents()
    found = [complaint for check in checks for complaint in check(shown)]
    if shown.width() > size.width() or shown.height() > size.height():
        found.append(f"needs {shown.width()} x {shown.height()}")
    return found


def test_nothing_stands_in_anybodys_way_in_light(look):
    checks = [
        audit.find_nameless,
        audit.find_markup,
        audit.find_clashes,
        audit.find_leaps,
        audit.find_small,
        audit.find_unreachable,
        audit.find_faint,
        audit.find_clipped,
    ]
    assert look(checks, USUAL) == {}


def test_dark_texts_are_readable_and_have_room(look, qapp):
    style.apply(qapp, "dark")
    assert look([audit.find_faint, audit.find_clipped], SMALL) == {}


def test_no_text_is_clipped_at_twice_its_size(look, qapp):
    font = qapp.font()
    font.setPointSizeF(font.pointSizeF() * 2)
    qapp.setFont(font)
    assert look([audit.find_clipped], SMALL) == {}


def test_german_has_room_and_a_key_for_everything(look, qapp):
    set_language(qapp, "de")
    assert look([audit.find_clipped, audit.find_clashes], SMALL) == {}


def test_the_longest_language_has_room(look, qapp):
    set_language(qapp, "de")
    qapp.installTranslator(PseudoTranslator(qapp))
    assert look([audit.find_clipped], SMALL) == {}


@pytest.mark.parametrize("language", ["en", "de"])
def test_no_key_has_two_meanings_on_any_page_in_any_state(
    language, still_context, written, qapp, qtbot
):
    for name in ("a.tif", "b.tif"):
        written.hold(name)
    set_language(qapp, language)
    window = MainWindow(still_context)
    qtbot.addWidget(window)
    window.show()
    still_context.controller._look_timer.stop()
    clashes = {}
    for page in list_pages():
        window.show_page(page.name, "waiting" if page.name == "problems" else "")
        for phase in Phase:
            still_context.controller._set(phase=phase, last=run_that(waiting=2), problem=None)
            qtbot.waitUntil(lambda: not still_context.tasks.busy)
            QApplication.processEvents()
            if found := audit.find_clashes(window):
                clashes[page.name, phase] = found
    held = window.findChild(ProblemsPage)
    assert held._card.problem.message == HELD_FILES.message
    letters = {audit._key(button.text()) for button in (held._replace, held._keep)}
    bar = {audit._key(action.text()) for action in window.list_actions()}
    assert not letters & bar  # which shows its letters only where it is too narrow
    assert clashes == {}
