"""The icons: one set, in the colours of the text next to them."""

import gc
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PySide6.QtCore import QSize
from PySide6.QtGui import QColor, QIcon, QPixmap
from PySide6.QtWidgets import QApplication

import mydata_like
from mydata_like.core.resources import find_resources
from mydata_like.gui.theme import style
from mydata_like.gui.theme.colours import DARK, LIGHT
from mydata_like.gui.theme.widgets import (
    IconLabel,
    _load_drawing,
    app_icon,
    drawing,
    icon,
    text_icon_size,
)
from mydata_like.hostos.dependencies import ICONS_VERSION

FOLDER = find_resources() / "icons"
LINES = sorted(path for path in FOLDER.glob("*.svg") if path.stem != "app")
SOURCE = Path(mydata_like.__file__).parent / "gui"


@pytest.fixture(autouse=True)
def app(qapp):
    style.apply(qapp, "light")
    yield qapp
    style.apply(qapp, "light")


def strongest(pixmap: QPixmap) -> str:
    """The colour of the pixel that covers most."""
    image = pixmap.toImage()
    pixels = (image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height()))
    return max(pixels, key=QColor.alpha).name()


@pytest.mark.parametrize("path", LINES, ids=lambda path: path.stem)
def test_every_drawing_belongs_to_the_one_set(path: Path):
    root = ElementTree.parse(path).getroot()
    assert root.get("viewBox") == "0 0 24 24"
    assert (root.get("stroke"), root.get("stroke-width")) == ("currentColor", "1.75")
    assert root.get("stroke-linecap") == root.get("stroke-linejoin") == "round"
    colours = set(re.findall(r'(?:fill|stroke)="([^"]+)"', path.read_text()))
    assert colours <= {"none", "currentColor"}
    assert f"<!-- Lucide {ICONS_VERSION}: " in path.read_text()
    assert drawing(path.stem, "#000000").isValid()


def test_an_icon_that_cannot_be_read_is_empty_and_comes_later(full):
    _load_drawing.cache_clear()
    with full():
        lacking = icon("warning").pixmap(QSize(48, 48), 1.0)
    assert QColor(lacking.toImage().pixelColor(24, 24)).alpha() == 0
    assert lacking.toImage() != icon("warning").pixmap(QSize(48, 48), 1.0).toImage()


@pytest.mark.parametrize("path", LINES, ids=lambda path: path.stem)
def test_every_drawing_keeps_within_its_square_and_fills_it(path: Path):
    image = icon(path.stem).pixmap(QSize(48, 48), 1.0).toImage()
    drawn = [(x, y) for x in range(48) for y in range(48) if image.pixelColor(x, y).alpha() > 40]
    across = {x for x, _ in drawn}
    down = {y for _, y in drawn}
    assert min(across) >= 1
    assert min(down) >= 1
    assert max(across) <= 46
    assert max(down) <= 46
    assert max(max(across) - min(across), max(down) - min(down)) >= 24


def test_every_icon_that_the_program_names_is_there():
    named = {
        name
        for path in SOURCE.rglob("*.py")
        for name in re.findall(r'(?:\b_?icon|drawing)\(\s*"([^"]+)"', path.read_text())
    }
    assert named - {path.stem for path in LINES} == set()


def test_an_icon_has_the_colour_of_text_and_follows_the_theme(app: QApplication):
    start = icon("start")
    assert strongest(start.pixmap(QSize(32, 32), 2.0)) == LIGHT.text
    assert strongest(start.pixmap(QSize(32, 32), 2.0, QIcon.Mode.Disabled)) == LIGHT.disabled
    assert strongest(start.pixmap(QSize(32, 32), 2.0, QIcon.Mode.Selected)) == LIGHT.highlighted
    style.apply(app, "dark")
    assert strongest(start.pixmap(QSize(32, 32), 2.0)) == DARK.text


def test_an_icon_of_a_status_has_its_colour_unless_it_is_selected(app: QApplication):
    check = icon("check", "good")
    assert strongest(check.pixmap(QSize(48, 48), 1.0)) == LIGHT.good
    assert strongest(check.pixmap(QSize(48, 48), 1.0, QIcon.Mode.Selected)) == LIGHT.highlighted
    style.apply(app, "dark")
    assert strongest(check.pixmap(QSize(48, 48), 1.0)) == DARK.good


@pytest.mark.parametrize("scale", [1.0, 1.25, 1.5, 2.0])
def test_an_icon_is_sharp_at_every_scale(scale: float):
    pixmap = icon("folder").pixmap(QSize(24, 24), scale)
    assert pixmap.size() == QSize(24, 24) * scale
    assert pixmap.devicePixelRatio() == scale


def test_an_icon_outlives_what_made_it():
    copy = QIcon(icon("stop"))
    copy.setIsMask(True)  # Qt clones what draws it
    gc.collect()
    assert strongest(copy.pixmap(QSize(32, 32), 2.0)) == LIGHT.text


def test_the_icon_of_the_program_can_be_drawn_small_and_large():
    for side in (16, 512):
        assert app_icon().pixmap(QSize(side, side), 1.0).size() == QSize(side, side)


def test_an_icon_is_painted_again_when_the_theme_changes(app: QApplication, qtbot):
    picture = IconLabel(2.0)
    qtbot.addWidget(picture)
    picture.show_icon(icon("check", "good"))
    picture.show()
    assert picture.height() == 2 * text_icon_size(picture).height()
    assert LIGHT.good in painted_colours(picture.grab())
    style.apply(app, "dark")
    assert DARK.good in painted_colours(picture.grab())
    assert LIGHT.good not in painted_colours(picture.grab())


def painted_colours(pixmap: QPixmap) -> set[str]:
    image = pixmap.toImage()
    return {
        image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())
    }
