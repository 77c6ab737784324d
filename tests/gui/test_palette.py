"""Light and dark: what can be read on what, and how a change is followed."""

from itertools import groupby

import pytest
from PySide6.QtCore import QObject, QSize
from PySide6.QtGui import QColor, QGuiApplication, QImage, QPalette
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QRadioButton,
    QSpinBox,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from mydata_like.gui.overview.bars import ShareBar, StatusBreakdownBar, StatusCounts
from mydata_like.gui.overview.overview_page import DropHint
from mydata_like.gui.tables.columns import FRACTION, BarDelegate
from mydata_like.gui.theme import colours, style
from mydata_like.gui.theme.colours import ALL, DARK, LIGHT, STRONG_DARK, STRONG_LIGHT, Shades
from tests.gui.contrast import contrast

GROUNDS = ("window", "base", "alternate", "button")
TEXTS = ("text", "quiet", "accent", "good", "working", "waiting", "problem", "skipped")


@pytest.fixture
def app(qapp):
    yield qapp
    style.apply(qapp, "light")


@pytest.mark.parametrize("shades", ALL)
@pytest.mark.parametrize("ground", GROUNDS)
def test_text_of_every_colour_can_be_read_on_everything_behind_it(shades: Shades, ground: str):
    least = 7.0 if shades in (STRONG_LIGHT, STRONG_DARK) else 4.5
    behind = getattr(shades, ground)
    hard = {name for name in TEXTS if contrast(getattr(shades, name), behind) < least}
    assert hard == set()
    assert contrast(shades.disabled, behind) >= 3
    assert contrast(shades.highlighted, shades.highlight) >= 4.5


@pytest.mark.parametrize("shades", ALL)
def test_edges_of_what_can_be_clicked_can_be_seen(shades: Shades):
    for ground in GROUNDS[:3]:
        assert contrast(shades.edge, getattr(shades, ground)) >= 3


EDGED = (QCheckBox, QRadioButton, QLineEdit, QPushButton, QComboBox, QSpinBox, QPlainTextEdit)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("kind", EDGED)
def test_what_can_be_clicked_has_an_edge_that_can_be_seen(app, qtbot, kind, theme):
    style.apply(app, theme)
    holder = QWidget()
    qtbot.addWidget(holder)
    widget = kind(holder)
    widget.setGeometry(20, 20, 120, 40)
    holder.resize(160, 80)
    picture = holder.grab().toImage()

    middle = [picture.pixelColor(x, 40).name() for x in range(15, 60)]
    ground = colours.current_shades().window
    assert max(contrast(one, ground) for one in middle) >= 3


def grab(qtbot, widget: QWidget, size: QSize) -> QImage:
    """Return the picture of a widget as a window."""
    qtbot.addWidget(widget)
    widget.resize(size)
    widget.show()
    return widget.grab().toImage()


def find_runs(image: QImage, y: int) -> list[str]:
    """Return the colours of a row of pixels from left to right, without single pixels."""
    row = [image.pixelColor(x, y).name() for x in range(image.width())]
    return [colour for colour, run in groupby(row) if len(list(run)) > 1]


@pytest.mark.parametrize("shades", ALL)
def test_the_parts_of_a_bar_do_not_touch(controller, app, qtbot, shades: Shades):
    app.setPalette(colours.build_palette(shades))
    bar = StatusBreakdownBar(controller)
    bar.show_parts(StatusCounts(500, 100, 100, 100, 100, 100))
    image = grab(qtbot, bar, QSize(400, 60))
    parts = (shades.good, shades.working, shades.waiting, shades.skipped, shades.problem)
    shown = find_runs(image, 6)
    assert shown[::2] == list(parts)
    assert set(shown[1::2]) == {shades.base}
    assert all(contrast(part, shades.base) >= 3 for part in parts)


@pytest.mark.parametrize("shades", ALL)
def test_the_shares_of_a_bar_do_not_touch_and_have_an_edge(app, qtbot, shades: Shades):
    app.setPalette(colours.build_palette(shades))
    bar = ShareBar("", None)
    bar.show_shares((0.3, "good"), (0.3, "working"))
    image = grab(qtbot, bar, QSize(200, bar.height()))
    middle = image.height() // 2
    assert find_runs(image, middle) == [shades.good, shades.base, shades.working, shades.base]
    assert contrast(image.pixelColor(150, 0).name(), shades.window) >= 3


@pytest.mark.parametrize("shades", ALL)
@pytest.mark.parametrize("selected", [False, True])
def test_the_bar_in_a_cell_shows_its_end(app, qtbot, shades: Shades, selected):
    app.setPalette(colours.build_palette(shades))
    table, item = QTableWidget(1, 1), QTableWidgetItem()
    item.setData(FRACTION, 0.5)
    table.setItem(0, 0, item)
    table.setItemDelegate(BarDelegate(table))
    item.setSelected(selected)
    image = grab(qtbot, table, QSize(200, 100))
    cell = table.visualItemRect(item).translated(table.viewport().pos())
    ground = shades.highlight if selected else shades.base
    end = [image.pixelColor(cell.right() - 12, y).name() for y in range(cell.top(), cell.bottom())]
    assert max(contrast(colour, ground) for colour in end) >= 3


@pytest.mark.parametrize("shades", ALL)
def test_the_place_to_drop_has_a_frame_that_can_be_seen(app, qtbot, shades: Shades):
    app.setPalette(colours.build_palette(shades))
    image = grab(qtbot, DropHint(), QSize(400, 100))
    frame = [image.pixelColor(x, 0).name() for x in range(20, 380)]
    assert max(contrast(colour, shades.window) for colour in frame) >= 3


@pytest.mark.parametrize("shades", ALL)
def test_the_palette_has_the_colours_of_the_shades_in_every_group(app, shades: Shades):
    built = colours.build_palette(shades)
    groups = QPalette.ColorGroup
    pairs = (
        (QPalette.ColorRole.WindowText, QPalette.ColorRole.Window),
        (QPalette.ColorRole.Text, QPalette.ColorRole.Base),
        (QPalette.ColorRole.ButtonText, QPalette.ColorRole.Button),
        (QPalette.ColorRole.HighlightedText, QPalette.ColorRole.Highlight),
        (QPalette.ColorRole.ToolTipText, QPalette.ColorRole.ToolTipBase),
        (QPalette.ColorRole.Link, QPalette.ColorRole.Base),
    )
    for group, least in ((groups.Active, 4.5), (groups.Inactive, 4.5), (groups.Disabled, 3.0)):
        for front, back in pairs:
            ratio = contrast(built.color(group, front).name(), built.color(group, back).name())
            assert ratio >= least, (group, front)


def test_a_theme_is_applied_and_can_be_changed_at_any_time(app: QApplication):
    style.apply(app, "dark")
    assert colours.current_shades() == DARK
    assert colours.status_colour("problem") == QColor(DARK.problem)
    style.apply(app, "light")
    assert colours.current_shades() == LIGHT
    assert colours.accent() == QColor(LIGHT.accent)


def test_the_system_theme_is_light_where_the_system_says_nothing(app: QApplication):
    style.apply(app, "system")
    assert colours.current_shades() == LIGHT


def test_a_change_of_the_system_does_not_undo_what_the_user_chose(app: QApplication):
    style.apply(app, "dark")
    app.styleHints().colorSchemeChanged.emit(app.styleHints().colorScheme())
    assert colours.current_shades() == DARK


def test_a_program_has_one_controller_however_often_the_theme_changes(app: QApplication):
    for theme in ("dark", "light", "system", "dark"):
        style.apply(app, theme)
    controllers = [child for child in app.children() if "ThemeController" in type(child).__name__]
    assert len(controllers) == 1
    assert isinstance(controllers[0], QObject)


def test_colours_are_found_for_a_palette_that_is_not_ours(app: QApplication):
    strange = QPalette(QColor("#202020"))
    app.setPalette(strange)
    assert QGuiApplication.palette().window().color().lightness() < 128
    assert colours.current_shades() == DARK
