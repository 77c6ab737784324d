"""The places of texts, frames and lines in widgets, as they are drawn."""

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, QRect, QSize, Qt
from PySide6.QtGui import QColor, QHoverEvent, QImage, QPainter, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import (
    QComboBox,
    QDateEdit,
    QLineEdit,
    QListView,
    QListWidget,
    QMenu,
    QMessageBox,
    QProgressBar,
    QScrollBar,
    QSpinBox,
    QStyle,
    QStyleOptionFocusRect,
    QTableView,
    QTreeView,
    QWidget,
)

from mydata_like.gui.table_model import Column, RowsModel, column_width, style_table
from mydata_like.gui.theme import style
from mydata_like.gui.theme.colours import ALL, DARK, LIGHT, Shades, build_palette, current_shades
from mydata_like.gui.theme.style import CELL_MARGIN, row_height
from mydata_like.gui.theme.widgets import PROMPT_WIDTH, FoldButton, Prompt, TextArea
from tests.gui.contrast import contrast

HEIGHT = 40  # pixels of a field
BARELY = 1.3  # a contrast that is hardly seen


@pytest.fixture(autouse=True)
def app(qapp):
    style.apply(qapp, "light")
    yield qapp
    style.apply(qapp, "light")


@pytest.fixture
def picture(qtbot):
    """Return what shows a widget in a window and returns its picture."""
    holders = []

    def take(widget: QWidget, size: QSize) -> QImage:
        holder = QWidget()
        qtbot.addWidget(holder)
        holders.append(holder)
        widget.setParent(holder)
        widget.setGeometry(QRect(20, 20, size.width(), size.height()))
        holder.resize(size + QSize(40, 40))
        holder.show()
        return holder.grab(widget.geometry()).toImage()

    return take


def find_text(image: QImage, area: QRect) -> tuple[int, int]:
    """Return how far a text is from the left and from the right of an area."""
    ground = image.pixelColor(area.center().x(), area.top() + 3).name()
    inked = [
        x
        for x in range(area.left(), area.right() + 1)
        for y in range(area.top() + 3, area.bottom() - 3)
        if contrast(image.pixelColor(x, y).name(), ground) > 3
    ]
    return inked[0] - area.left(), area.right() - inked[-1]


@pytest.mark.parametrize("number", [False, True])
def test_a_title_is_above_its_cells_and_both_keep_a_margin(picture, number):
    table, model = QTableView(), RowsModel()
    model.columns = tuple(
        Column(name, "HHHH", lambda _row: "HHHH", number=number) for name in ("one", "two")
    )
    table.setModel(model)
    style_table(table)
    model.show(["row"])
    width = column_width(table, 12)
    table.setColumnWidth(0, width)
    image = picture(table, QSize(300, 120))

    left, top = table.frameWidth(), table.horizontalHeader().height() + table.frameWidth()
    title = find_text(image, QRect(left, left, width - 1, top - left - 1))
    cell = find_text(image, QRect(left, top, width - 1, table.rowHeight(0)))
    side = 1 if number else 0
    assert title[side] == cell[side]
    assert CELL_MARGIN - 1 <= cell[side] <= CELL_MARGIN + 1


def test_text_begins_at_the_same_place_in_every_kind_of_field(picture):
    combo, area = QComboBox(), TextArea("H")
    combo.addItem("H")
    fields = [QLineEdit("H"), combo, QSpinBox(prefix="H"), area]
    size = QSize(120, HEIGHT)
    starts = {find_text(picture(field, size), QRect(3, 3, 90, 24))[0] for field in fields}
    assert len(starts) == 1


@pytest.mark.parametrize("scale", [1, 2])
def test_fields_for_one_line_have_one_height(qtbot, scale):
    fields = [QLineEdit(), QSpinBox(), QDateEdit(calendarPopup=True)]
    for field in fields:
        qtbot.addWidget(field)
        font = field.font()
        font.setPointSizeF(font.pointSizeF() * scale)
        field.setFont(font)
    assert len({field.sizeHint().height() for field in fields}) == 1


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("field", [QSpinBox, TextArea])
def test_every_field_has_the_border_of_a_text_field(app, picture, field, theme):
    style.apply(app, theme)
    size = QSize(120, HEIGHT)
    expected, found = picture(QLineEdit(), size), picture(field(), size)
    places = [(x, y) for x in (0, 1, 2, 60, 100, 117, 118, 119) for y in (0, 1, 2, 37, 38, 39)]
    pairs = [(found.pixelColor(*at).name(), expected.pixelColor(*at).name()) for at in places]
    assert max(contrast(*pair) for pair in pairs) < BARELY


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("field", [QSpinBox, QDateEdit])
def test_an_arrow_below_the_mouse_is_marked_within_the_border(app, picture, field, theme):
    style.apply(app, theme)
    size, widget = QSize(120, HEIGHT), field(calendarPopup=True) if field is QDateEdit else field()
    before = picture(widget, size)
    place = QPointF(110, 10)
    widget.setAttribute(Qt.WidgetAttribute.WA_UnderMouse)
    event = QHoverEvent(QEvent.Type.HoverMove, place, widget.mapToGlobal(place), QPointF())
    app.sendEvent(widget, event)
    after = widget.grab().toImage()

    changed = {
        (x, y)
        for x in range(size.width())
        for y in range(size.height())
        if before.pixelColor(x, y) != after.pixelColor(x, y)
    }
    border = QRect(2, 2, size.width() - 4, size.height() - 4)
    assert changed
    assert all(border.contains(x, y) for x, y in changed)


def test_the_arrow_of_a_spin_box_that_goes_no_further_is_faint(picture):
    box = QSpinBox(minimum=0, maximum=9, value=9)
    image = picture(box, QSize(120, HEIGHT))
    upper = QRect(100, 4, 16, HEIGHT // 2 - 4)
    lower = QRect(100, HEIGHT // 2, 16, HEIGHT // 2 - 4)
    assert darkest(image, upper) < darkest(image, lower)


def darkest(image: QImage, area: QRect) -> float:
    return max(
        contrast(image.pixelColor(x, y).name(), LIGHT.base)
        for x in range(area.left(), area.right())
        for y in range(area.top(), area.bottom())
    )


def test_rows_of_trees_and_lists_are_as_high_as_those_of_tables(qtbot):
    model = QStandardItemModel()
    model.appendRow(QStandardItem("one"))
    table, tree, rows = QTableView(), QTreeView(), QListView()
    for view in (table, tree, rows):
        qtbot.addWidget(view)
        view.setModel(model)
    style_table(table)
    index = model.index(0, 0)
    heights = {table.rowHeight(0), tree.rowHeight(index), rows.sizeHintForRow(0)}
    assert heights == {row_height(table.fontMetrics())}


def test_an_item_of_several_lines_has_room_for_all_of_them(qtbot):
    view = QListWidget()
    qtbot.addWidget(view)
    view.setWordWrap(True)
    view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    view.addItem("word " * 60)
    view.resize(300, 400)
    view.show()
    metrics, area = view.fontMetrics(), view.visualItemRect(view.item(0))
    room = area.width() - 2 * CELL_MARGIN
    needed = metrics.boundingRect(
        QRect(0, 0, room, 9999), Qt.TextFlag.TextWordWrap, "word " * 60
    ).height()
    assert area.height() > needed > 3 * metrics.height()


def test_a_text_that_just_does_not_fit_an_item_is_wrapped(qtbot):
    rows = QListWidget()
    qtbot.addWidget(rows)
    rows.setWordWrap(True)
    rows.setSpacing(8)
    rows.setResizeMode(QListWidget.ResizeMode.Adjust)
    rows.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    rows.addItem("The settings exclude symbolic links of this kind")
    needed = rows.fontMetrics().horizontalAdvance(rows.item(0).text()) + 2 * CELL_MARGIN
    rows.show()

    for spare in range(-20, 30):
        rows.resize(needed + spare + rows.width() - rows.viewport().width(), 200)
        rows.doItemsLayout()
        place = rows.visualItemRect(rows.item(0))
        assert rows.viewport().rect().contains(place)


@pytest.mark.parametrize("shades", [LIGHT, DARK])
def test_frames_of_tables_and_menus_can_be_told_from_their_surroundings(app, picture, shades):
    style.apply(app, theme_of(shades))
    size = QSize(120, 80)
    menu = QMenu()
    menu.addAction("One")
    menu.addSeparator()
    menu.addAction("Two")
    middle = menu.actionGeometry(menu.actions()[1]).center()
    assert picture(QTableView(), size).pixelColor(0, 40).name() == shades.line
    image = menu.grab().toImage()
    assert image.pixelColor(0, middle.y()).name() == shades.line
    assert image.pixelColor(middle).name() == shades.line


def theme_of(shades: Shades) -> str:
    return "dark" if shades is DARK else "light"


@pytest.fixture(params=ALL)
def shades(app, request):
    """The colours of each theme in turn."""
    app.setPalette(build_palette(request.param))
    return request.param


def list_colours(image: QImage, area: QRect) -> set[str]:
    return {
        image.pixelColor(x, y).name()
        for x in range(area.left(), area.right() + 1)
        for y in range(area.top(), area.bottom() + 1)
    }


def test_a_progress_bar_is_flat_and_shows_its_end_and_what_is_done(picture, shades):
    bar = QProgressBar(maximum=100, value=50, textVisible=False)
    image = picture(bar, QSize(200, 20))
    (done,) = list_colours(image, QRect(6, 4, 80, 12))
    (left,) = list_colours(image, QRect(110, 4, 80, 12))
    assert contrast(done, left) >= 3
    assert contrast(image.pixelColor(199, 10).name(), shades.window) >= 3
    bar.setValue(0)
    assert list_colours(bar.grab().toImage(), QRect(6, 4, 188, 12)) == {left}


def test_a_progress_bar_without_an_end_moves(picture, qtbot, app):
    bar = QProgressBar(maximum=0)
    before = picture(bar, QSize(200, 20))
    inside = list_colours(before, QRect(6, 4, 188, 12))
    assert {LIGHT.base, LIGHT.highlight} <= inside
    assert len(list_colours(before, QRect(6, 10, 188, 1))) <= 4  # two, and both sides of the part
    painted = PaintEvents(bar)
    qtbot.waitUntil(lambda: painted.number > 2)
    assert bar.grab().toImage() != before


class PaintEvents(QObject):
    """The number of times that a widget was painted."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self.number = 0
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.number += event.type() == QEvent.Type.Paint
        return False


@pytest.mark.parametrize("orientation", Qt.Orientation)
def test_a_scroll_bar_has_a_flat_handle_that_can_be_seen(picture, shades, orientation):
    flat = orientation == Qt.Orientation.Horizontal
    bar = QScrollBar(orientation, maximum=100, pageStep=100)
    size = QSize(200, bar.sizeHint().height()) if flat else QSize(bar.sizeHint().width(), 200)
    image = picture(bar, size)
    middle = bar.sizeHint().height() // 2 if flat else bar.sizeHint().width() // 2
    handle = QRect(20, middle, 60, 1) if flat else QRect(middle, 20, 1, 60)
    (shown,) = list_colours(image, handle)
    (ground,) = list_colours(image, handle.translated(*((100, 0) if flat else (0, 100))))
    assert contrast(shown, ground) >= 3


def test_a_scroll_bar_follows_the_mouse_without_arrows(picture, qtbot):
    bar = QScrollBar(Qt.Orientation.Vertical, maximum=100, pageStep=100)
    picture(bar, QSize(bar.sizeHint().width(), 200))
    left, x = Qt.MouseButton.LeftButton, bar.width() // 2
    qtbot.mouseClick(bar, left, pos=QPoint(x, 199))
    assert bar.value() == 100
    qtbot.mouseClick(bar, left, pos=QPoint(x, 0))
    assert bar.value() == 0
    qtbot.mousePress(bar, left, pos=QPoint(x, 1))
    qtbot.mouseMove(bar, QPoint(x, 51))
    assert 45 < bar.value() < 55
    qtbot.mouseRelease(bar, left, pos=QPoint(x, 51))


@pytest.mark.parametrize("selected", [False, True])
def test_the_frame_of_the_focus_is_a_line_that_can_be_seen(app, qtbot, shades, selected):
    image = QImage(60, 24, QImage.Format.Format_RGB32)
    ground = shades.highlight if selected else shades.base
    image.fill(QColor(ground))
    option = QStyleOptionFocusRect()
    option.rect = image.rect()
    option.state = QStyle.StateFlag.State_KeyboardFocusChange
    if selected:
        option.state |= QStyle.StateFlag.State_Selected
    painter = QPainter(image)
    app.style().drawPrimitive(QStyle.PrimitiveElement.PE_FrameFocusRect, option, painter)
    painter.end()
    assert max(contrast(image.pixelColor(30, y).name(), ground) for y in (0, 1)) >= 3
    assert list_colours(image, image.rect().adjusted(3, 3, -3, -3)) == {ground}


def test_a_question_has_an_icon_of_the_program_in_the_colours_of_the_theme(app, qtbot):
    box = Prompt()
    qtbot.addWidget(box)
    box.setIcon(QMessageBox.Icon.Question)
    box.show()
    for theme in ("light", "dark"):
        style.apply(app, theme)
        qtbot.waitUntil(lambda: colours_of(box) == {current_shades().accent})


def colours_of(box: QMessageBox) -> set[str]:
    image = box.iconPixmap().toImage()
    pixels = [image.pixelColor(x, y) for x in range(image.width()) for y in range(image.height())]
    return {pixel.name() for pixel in pixels if pixel.alpha() == 255}


def test_a_question_is_wide_enough_to_be_read(qtbot):
    box = Prompt()
    qtbot.addWidget(box)
    box.setText("Quit?")
    box.setInformativeText("The upload can go on without the window. " * 3)
    box.show()
    assert box.width() > box.fontMetrics().averageCharWidth() * PROMPT_WIDTH


@pytest.mark.parametrize("button", ["Ok", "Cancel", "Close", "Yes", "No"])
def test_standard_buttons_have_no_icons_on_any_desktop(app, button):
    which = QStyle.StandardPixmap[f"SP_Dialog{button}Button"]
    assert app.style().standardIcon(which).isNull()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_arrow_to_hidden_actions_can_be_seen_in_both_themes(app, theme):
    icon = app.style().standardIcon(QStyle.StandardPixmap.SP_ToolBarHorizontalExtensionButton)
    style.apply(app, theme)
    image = icon.pixmap(QSize(32, 32)).toImage()
    pixels = [image.pixelColor(x, y) for x in range(32) for y in range(32)]
    ground = current_shades().window
    assert max(contrast(one.name(), ground) for one in pixels if one.alpha() == 255) >= 4.5


def test_a_button_that_folds_looks_like_a_heading_while_it_is_checked(picture):
    buttons = [FoldButton("Details", None) for _ in range(2)]
    buttons[1].setChecked(True)
    grounds = [picture(button, QSize(120, 30)).pixelColor(112, 15).name() for button in buttons]

    assert grounds[0] == grounds[1]
