"""The program can be used with keys alone, by voice, by touch, with large text, in every theme."""

from collections.abc import Callable

import pytest
from PySide6.QtCore import QLocale, QSize, QTranslator
from PySide6.QtWidgets import QWidget

from mydata_like.gui.look import palette
from mydata_like.gui.look.language import speak
from mydata_like.gui.window import Window
from tests.gui import audit
from tests.gui.pseudo import PseudoTranslator
from tests.gui.scenes import Stage, list_scenes

SMALL, USUAL = QSize(1024, 700), QSize(1366, 768)
Check = Callable[[QWidget], list[str]]


@pytest.fixture
def desk(open_desk, site, qtbot):
    """A desk after a first run."""
    desk = open_desk(site.config)
    qtbot.waitUntil(lambda: desk.controller.state.phase == "idle", timeout=60_000)
    desk.controller.start()
    qtbot.waitUntil(lambda: bool(desk.controller.state.last), timeout=60_000)
    return desk


@pytest.fixture
def look(desk, qapp, qtbot):
    """Return what the checks complain of in every scene, by scene."""
    palette.apply(qapp, "light")
    font = qapp.font()

    def look_at(checks: list[Check], size: QSize = USUAL) -> dict[str, list[str]]:
        window = Window(desk)
        qtbot.addWidget(window)
        stage = Stage(window, desk)
        window.resize(size)
        window.show()
        complaints = {}
        for scene in list_scenes():
            shown = scene.open(stage)
            qtbot.waitUntil(lambda: not desk.background.busy, timeout=60_000)
            qapp.processEvents()  # texts that have just come are laid out
            found = [complaint for check in checks for complaint in check(shown)]
            if shown.width() > size.width() or shown.height() > size.height():
                found.append(f"needs {shown.width()} x {shown.height()}")
            complaints[scene.name] = found
            if shown is not window:
                shown.close()
        window.close()
        return {name: found for name, found in complaints.items() if found}

    yield look_at
    qapp.setFont(font)
    palette.apply(qapp, "light")
    for translator in qapp.findChildren(QTranslator):
        qapp.removeTranslator(translator)
    QLocale.setDefault(QLocale.c())


def test_everything_has_a_name_a_key_of_its_own_and_a_size_to_hit(look):
    checks = [
        audit.find_nameless,
        audit.find_clashes,
        audit.find_leaps,
        audit.find_small,
        audit.find_unreachable,
    ]
    assert look(checks) == {}


def test_every_text_stands_out_from_its_ground_in_light_and_dark(look, qapp):
    assert look([audit.find_faint]) == {}
    palette.apply(qapp, "dark")
    assert look([audit.find_faint]) == {}


def test_no_text_is_clipped_not_even_at_twice_its_size(look, qapp):
    assert look([audit.find_clipped], SMALL) == {}
    font = qapp.font()
    font.setPointSizeF(font.pointSizeF() * 2)
    qapp.setFont(font)
    assert look([audit.find_clipped], USUAL) == {}
    assert look([audit.find_clipped], SMALL) == {}


def test_german_has_room_and_a_key_for_everything_and_so_has_the_longest_language(look, qapp):
    speak(qapp, "de")
    assert look([audit.find_clipped, audit.find_clashes], SMALL) == {}
    qapp.installTranslator(PseudoTranslator(qapp))
    assert look([audit.find_clipped], SMALL) == {}
