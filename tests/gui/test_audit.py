"""The audit finds what it is there to find."""

import pytest
from PySide6.QtGui import QAction, QColor, QPalette
from PySide6.QtWidgets import (
    QFormLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QMenu,
    QPushButton,
    QToolBar,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from mydata_like.gui.theme import style
from mydata_like.gui.theme.widgets import icon
from tests.gui import audit
from tests.gui.pseudo import PseudoTranslator, pseudo

CHECKS = (
    audit.find_nameless,
    audit.find_clashes,
    audit.find_leaps,
    audit.find_small,
    audit.find_clipped,
    audit.find_faint,
    audit.find_unreachable,
)


@pytest.fixture
def window(qtbot, qapp):
    style.apply(qapp, "light")
    window = QWidget()
    qtbot.addWidget(window)
    return window


def show(window: QWidget, *widgets: QWidget) -> None:
    layout = window.layout() or QVBoxLayout(window)
    for widget in widgets:
        layout.addWidget(widget)
    window.show()


def test_a_good_window_has_no_complaints(window):
    form = QFormLayout(window)
    form.addRow("&Name", QLineEdit())
    form.addRow("&Place", QLineEdit())
    form.addRow(QPushButton("&Save"))
    show(window)
    assert [complaint for check in CHECKS for complaint in check(window)] == []


def test_a_button_with_nothing_but_an_icon_needs_a_name(window):
    button = QPushButton()
    button.setIcon(icon("start"))
    show(window, button)
    assert "QPushButton" in audit.find_nameless(window)[0]
    button.setAccessibleName("Start")
    assert audit.find_nameless(window) == []


def test_one_key_for_two_buttons_is_a_clash(window):
    show(window, QPushButton("&Save"), QPushButton("&Stop"))
    assert audit.find_clashes(window) == ["Alt+S has 2 meanings"]


def test_one_key_for_two_entries_of_a_menu_is_a_clash(window):
    menu = QMenu("File", window)
    menu.addAction("&Open")
    menu.addAction("&Other")
    show(window)
    assert audit.find_clashes(window) == ["Alt+O has 2 meanings in the menu 'File'"]


def test_a_tab_order_against_the_eye_is_a_leap(window):
    first, second, third = QLineEdit("1"), QLineEdit("2"), QLineEdit("3")
    show(window, first, second, third)
    assert audit.find_leaps(window) == []
    QWidget.setTabOrder(second, first)
    assert len(audit.find_leaps(window)) == 2


def test_tab_may_go_up_into_the_next_column_but_not_back(window):
    columns = QHBoxLayout(window)
    texts = [QLineEdit(str(number)) for number in range(4)]
    for column in (texts[:2], texts[2:]):
        layout = QVBoxLayout()
        for text in column:
            layout.addWidget(text)
        columns.addLayout(layout)
    show(window)
    assert audit.find_leaps(window) == []
    QWidget.setTabOrder(texts[2], texts[0])
    assert audit.find_leaps(window) != []


def test_a_low_button_is_too_small(window):
    button = QPushButton("x")
    button.setFixedSize(40, 12)
    show(window, button)
    assert audit.find_small(window) == ["QPushButton 'x' in QWidget is 40 x 12"]


def test_a_text_without_room_is_clipped(window):
    label = QLabel("Everything arrived and is proven to be there")
    label.setFixedWidth(40)
    wrapped = QLabel(label.text())
    wrapped.setWordWrap(True)
    wrapped.setFixedWidth(150)
    show(window, label, wrapped)
    assert len(audit.find_clipped(window)) == 1
    wrapped.setFixedHeight(10)
    assert len(audit.find_clipped(window)) == 2


def test_grey_on_grey_is_faint(window):
    label = QLabel("grey")
    colours = label.palette()
    colours.setColor(QPalette.ColorRole.WindowText, QColor("#a0a0a0"))
    label.setPalette(colours)
    show(window, label)
    assert len(audit.find_faint(window)) == 1


def test_an_action_that_is_not_shown_is_unreachable(window):
    action = QAction("Burn", window)
    show(window)
    assert audit.find_unreachable(window) == ["the action 'Burn' cannot be reached"]
    button = QToolButton()
    button.setFocusPolicy(button.focusPolicy().StrongFocus)
    button.setDefaultAction(action)
    show(window, button)
    assert audit.find_unreachable(window) == []


def test_a_tool_bar_without_stops_of_tab_is_unreachable(window):
    bar = QToolBar()
    bar.addAction("Burn")
    show(window, bar)
    assert audit.find_unreachable(window) == ["the action 'Burn' cannot be reached"]
    for button in bar.findChildren(QToolButton):
        button.setFocusPolicy(button.focusPolicy().TabFocus)
    assert audit.find_unreachable(window) == []


def test_the_pseudo_language_is_long_and_keeps_placeholders(qapp):
    assert pseudo("&Send %Ln files") == "[&Séñd %Ln fîléš~~~~~~]".replace("š", "s")
    translator = PseudoTranslator(qapp)
    qapp.installTranslator(translator)
    try:
        assert QWidget().tr("Start") == "[Stárt~~]"
    finally:
        qapp.removeTranslator(translator)
