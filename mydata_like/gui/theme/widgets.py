"""Icons, plain-text labels, drop targets, file dialogs and other small widgets."""

import logging
import os
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import NamedTuple, cast

from PySide6.QtCore import (
    QCoreApplication,
    QEvent,
    QKeyCombination,
    QMimeData,
    QObject,
    QRect,
    QRectF,
    QSize,
    Qt,
    QTimer,
    Signal,
    SignalInstance,
    Slot,
)
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QAction,
    QColor,
    QDragEnterEvent,
    QDropEvent,
    QFont,
    QGuiApplication,
    QIcon,
    QIconEngine,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QPalette,
    QPen,
    QPixmap,
    QResizeEvent,
)
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import (
    QAbstractButton,
    QFileDialog,
    QFrame,
    QLabel,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QMessageBox,
    QPlainTextEdit,
    QPushButton,
    QSizePolicy,
    QStyle,
    QStyleOptionToolButton,
    QToolButton,
    QWidget,
)

from mydata_like.core.formatting import format_lines
from mydata_like.core.resources import find_resources
from mydata_like.gui.theme import colours, metrics, texts
from mydata_like.gui.theme.colours import Status, status_colour
from mydata_like.gui.theme.layouts import frameless, hbox, vbox

logger = logging.getLogger(__name__)


@cache
def icon(name: str, status: Status | None = None) -> QIcon:
    """Return the icon of this name, in the colour of text or of a status."""
    return QIcon(_Tinted(name, status))


def app_icon() -> QIcon:
    """Return the icon of the program itself, which keeps its colours."""
    return QIcon(str(find_resources() / "icons" / "app.svg"))


def text_icon_size(widget: QWidget) -> QSize:
    """Return the size of icons next to the text of a widget."""
    side = round(widget.fontMetrics().height() * 1.3)
    return QSize(side, side)


def drawing(name: str, colour: str) -> QSvgRenderer:
    """Return the icon's drawing in a colour (#rrggbb), for custom painting.

    It is empty while the icon cannot be read, such as with too many open files: a message without
    its icon is better than none.
    """
    try:
        return _load_drawing(name, colour)
    except OSError as error:
        logger.warning("An icon cannot be read: %s", error)
        return QSvgRenderer()


@lru_cache(maxsize=512)
def _load_drawing(name: str, colour: str) -> QSvgRenderer:
    source = (find_resources() / "icons" / f"{name}.svg").read_bytes()
    return QSvgRenderer(source.replace(b"currentColor", colour.encode()))


# Work-around: PySide6 6.12.0 lets Python free the clone of a QIconEngine, which belongs to Qt, and
# 6.10.0 crashes when Python 3.13 collects an icon with an engine of its own. So all icons and
# clones are kept; there are few. No report known; see test_an_icon_outlives_what_made_it. Remove
# when that test passes without this list in Python 3.12, and `make test-wheel` without that cache.
_clones: list[QIconEngine] = []


_SHARE = 0.92  # of an icon's square: the rest keeps it apart from the text next to it


class _Tinted(QIconEngine):
    """Paints a drawing in the colour of its mode and the palette."""

    def __init__(self, name: str, status: Status | None) -> None:
        super().__init__()
        self._name = name
        self._status = status

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, state: QIcon.State) -> None:
        side = min(rect.width(), rect.height()) * _SHARE
        square = QRectF(0, 0, side, side)
        square.moveCenter(QRectF(rect).center())
        drawing(self._name, self._colour(mode).name()).render(painter, square)

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        return self.scaledPixmap(size, mode, state, 1.0)

    def scaledPixmap(
        self, size: QSize, mode: QIcon.Mode, state: QIcon.State, scale: float
    ) -> QPixmap:
        pixmap = QPixmap(size * scale)
        pixmap.setDevicePixelRatio(scale)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        self.paint(painter, QRect(0, 0, size.width(), size.height()), mode, state)
        painter.end()
        return pixmap

    def clone(self) -> QIconEngine:
        copy = _Tinted(self._name, self._status)
        _clones.append(copy)
        return copy

    def _colour(self, mode: QIcon.Mode) -> QColor:
        palette = QGuiApplication.palette()
        if mode == QIcon.Mode.Disabled:
            return palette.color(QPalette.ColorGroup.Disabled, QPalette.ColorRole.WindowText)
        if mode == QIcon.Mode.Selected:
            return palette.color(QPalette.ColorRole.HighlightedText)
        if self._status:
            return status_colour(self._status)
        return palette.color(QPalette.ColorRole.WindowText)


translate = QCoreApplication.translate


class RowIcon(NamedTuple):
    """The text, the icon and the colour of a state; without a status, the colour of text."""

    word: str
    shape: str
    status: Status | None = None

    @property
    def icon(self) -> QIcon:
        return icon(self.shape, self.status)


def mark_of(state: str) -> RowIcon | None:
    """Return the mark of a state of the ledger; None for an unknown or obsolete state."""
    return list_marks().get(state)


def list_marks() -> dict[str, RowIcon]:
    """Return the mark of each state of the ledger."""
    failed = RowIcon(translate("marks", "Failed"), "error", "problem")
    skipped = RowIcon(translate("marks", "Left out"), "skipped", "skipped")
    return {
        "found": RowIcon(translate("marks", "Not sent yet"), "waiting", "waiting"),
        "staged": RowIcon(translate("marks", "Sent"), "up", "working"),
        "registered": RowIcon(translate("marks", "Registered"), "server", "working"),
        "repaired": RowIcon(translate("marks", "Being replaced"), "server", "working"),
        "verified": RowIcon(translate("marks", "Verified"), "check", "good"),
        "changed": RowIcon(
            translate("marks", "Changed on this computer only"), "waiting", "waiting"
        ),
        "waiting": RowIcon(translate("marks", "Waiting"), "waiting", "waiting"),
        "failed": failed,
        "folder-failed": failed,
        "skipped": skipped,
        "folder-skipped": skipped,
    }


class PlainLabel(QLabel):
    r"""A label that never interprets markup, and shows control characters as `\x1b`."""

    def __init__(
        self,
        text: str = "",
        parent: QWidget | None = None,
        *,
        wrap: bool = False,
        selectable: bool = False,
        quiet: bool = False,
        heading: float = 0,
    ) -> None:
        """`wrap` allows several lines; `heading` is the factor of a bold text, see `scale`.

        A `quiet` text has the colour of placeholders.
        """
        super().__init__(format_lines(text), parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(wrap)
        if selectable:
            self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        if quiet:
            self.setForegroundRole(QPalette.ColorRole.PlaceholderText)
        if heading:
            self.scale(heading, bold=True)

    def setText(self, text: str) -> None:
        super().setText(format_lines(text))

    def scale(self, factor: float, *, bold: bool = False) -> None:
        """Scale the text by this factor of the parent's; call it again when that changes."""
        font = QFont()  # what is not set here is inherited
        font.setBold(bold)
        if factor != 1:
            parent = self.parentWidget() or self
            font.setPointSizeF(parent.font().pointSizeF() * factor)
        self.setFont(font)


def set_tip(widget: QWidget, text: str) -> None:
    """Show a text literally as tool tip; assistive technology reads it without markup."""
    widget.setToolTip(texts.tip(text))
    widget.setAccessibleDescription(text)  # otherwise the tool tip, with its markup


class ElidedLabel(PlainLabel):
    """A label of one line that elides the middle of a text that does not fit."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__("", parent)
        self._full_text = ""
        self.setMinimumWidth(self.fontMetrics().averageCharWidth() * 8)
        self.set_full_text(text)

    @property
    def full_text(self) -> str:
        """The full text."""
        return self._full_text

    def set_full_text(self, text: str) -> None:
        """Show this text, elided if necessary."""
        self._full_text = text
        self.setAccessibleName(text)
        self._elide()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        mode = Qt.TextElideMode.ElideMiddle
        shown = self.fontMetrics().elidedText(self._full_text, mode, max(1, self.width()))
        self.setText(shown)
        set_tip(self, "" if shown == self._full_text else self._full_text)


def allow_action(action: QAction, *, allowed: bool) -> None:
    """Show and enable an action, or hide it; Qt ignores the keys of hidden actions."""
    action.setVisible(allowed)
    action.setEnabled(allowed)


class IconLabel(QWidget):
    """A label with an icon, scaled relative to the text, in light or dark colours.

    It needs an accessible name if it adds information to the text next to it.
    """

    def __init__(self, scale: float = 1.0, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._scale = scale
        self._icon = QIcon()
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)

    def show_icon(self, icon: QIcon) -> None:
        """Show this icon; an icon without a drawing leaves the place empty."""
        self._icon = icon
        self.update()

    def sizeHint(self) -> QSize:
        return text_icon_size(self) * self._scale

    def paintEvent(self, event: QPaintEvent) -> None:
        mode = QIcon.Mode.Normal if self.isEnabled() else QIcon.Mode.Disabled
        self._icon.paint(QPainter(self), self.rect(), mode=mode)


class FoldButton(QToolButton):
    """A button that shows and hides what is below it; `toggled` reports which."""

    def __init__(self, text: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setText(text)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setAutoRaise(True)
        self.setCheckable(True)
        self._show_arrow()
        self.toggled.connect(self._show_arrow)

    def initStyleOption(self, option: QStyleOptionToolButton) -> None:
        """Look like a heading also while it is checked: the arrow tells."""
        super().initStyleOption(option)
        option.state &= ~QStyle.StateFlag.State_On

    @Slot()
    def _show_arrow(self) -> None:
        self.setIcon(icon("down" if self.isChecked() else "right"))


class FoldedText(QWidget):
    """A text for experts, which a button shows and hides; hidden if there is none."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._button = FoldButton(self.tr("Details"), self)
        self._text = PlainLabel("", self, wrap=True, selectable=True)
        self._text.hide()
        self._button.toggled.connect(self._text.setVisible)
        frameless(vbox(self._button, self._text, inside=self))
        self.hide()

    def text(self) -> str:
        """Return the text, also while it is folded."""
        return self._text.text()

    def setText(self, text: str) -> None:
        """Show a text, folded if it is another one."""
        if text != self.text():
            self._text.setText(text)
            self._button.setChecked(False)
        self.setVisible(bool(text))


def action(
    parent: QObject,
    icon_name: str,
    text: str,
    effect: Callable[..., object] | SignalInstance | None = None,
    *,
    keys: QKeySequence | QKeySequence.StandardKey | QKeyCombination | Qt.Key | None = None,
) -> QAction:
    """Return an action; without the name of an icon it has none."""
    made = QAction(text, parent)
    if icon_name:
        made.setIcon(icon(icon_name))
    if keys is not None:
        made.setShortcut(QKeySequence(keys))
    if effect is not None:
        made.triggered.connect(effect)
    return made


def push_button(
    parent: QWidget, text: str, on_click: Callable[[], object] | SignalInstance, icon_name: str = ""
) -> QPushButton:
    """Return a button with an optional icon, and what a click does."""
    button = QPushButton(icon(icon_name), text, parent) if icon_name else QPushButton(text, parent)
    button.clicked.connect(on_click)
    return button


class Panel(QFrame):
    """A frame with round corners, in the colour of lists."""

    is_marked = False  # its line is thick, in the accent colour

    def mark(self, *, marked: bool) -> None:
        """Mark the frame or not."""
        if marked != self.is_marked:
            self.is_marked = marked
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, palette = QPainter(self), self.palette()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        plain = QPen(palette.mid().color())
        painter.setPen(QPen(colours.accent(), 2.0) if self.is_marked else plain)
        painter.setBrush(palette.base())
        painter.drawRoundedRect(self.rect().adjusted(1, 1, -2, -2), 6, 6)


class EmptyMessage(QWidget):
    """A picture and a sentence in the place of rows that are not there."""

    def __init__(self, icon_name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        picture = IconLabel(parent=self)
        picture.setFixedSize(metrics.PICTURE, metrics.PICTURE)
        picture.show_icon(icon(icon_name, "skipped"))
        self._sentence = PlainLabel("", self, wrap=True)
        self._sentence.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._content = vbox((picture, Qt.AlignmentFlag.AlignHCenter), self._sentence)
        self._content.setSpacing(metrics.SPACE)
        vbox(2, self._content, 3, inside=self)

    def add_button(self, button: QPushButton) -> None:
        """Add what can be done to see something."""
        self._content.addWidget(button, 0, Qt.AlignmentFlag.AlignHCenter)

    def text(self) -> str:
        """Return the sentence."""
        return self._sentence.text()

    def setText(self, text: str) -> None:
        """Show a sentence."""
        self._sentence.setText(text)


class Note(NamedTuple):
    """One sentence, and the status that gives it icon and colour."""

    status: Status
    text: str


NOTE_ICONS: dict[Status, str] = {  # the worst first
    "problem": "error",
    "waiting": "warning",
    "skipped": "skipped",
    "good": "check",
}


class NoteList(QListWidget):
    """Sentences with icons, one in each row."""

    def __init__(self, name: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.notes: list[Note] = []
        self.setAccessibleName(name)
        self.setWordWrap(True)
        self.setResizeMode(QListWidget.ResizeMode.Adjust)
        self.setSelectionMode(QListWidget.SelectionMode.NoSelection)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def show_notes(self, notes: Sequence[Note]) -> None:
        """Show these notes; if only their numbers change, rows stay where they are."""
        self.notes = list(notes)
        while self.count() > len(notes):
            self.takeItem(self.count() - 1)
        for place, (status, text) in enumerate(notes):
            item = self.item(place) or QListWidgetItem(self)
            item.setText(text)
            item.setIcon(icon(NOTE_ICONS[status], status))


PROMPT_WIDTH = 50  # characters
TOAST_DURATION = 10_000  # milliseconds


class Toast(Panel):
    """A notice that offers to undo an action; `undone` is emitted when the user does.

    It is announced to assistive technology, and stays while it has the focus or the mouse. Without
    a parent, it comes last in the order of Tab when it is added to a layout.
    """

    undone = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._message = ElidedLabel("", self)
        self._undo = QAction(icon("undo"), self.tr("Undo"), self)
        self._button = QPushButton(self._undo.icon(), self._undo.text(), self)
        self._timer = QTimer(self, singleShot=True, interval=TOAST_DURATION)
        self._undo.setShortcut(QKeySequence.StandardKey.Undo)
        self.addAction(self._undo)
        hbox((self._message, 1), self._button, inside=self)
        self._button.clicked.connect(self._undo.trigger)
        self._undo.triggered.connect(self._on_undo)
        self._timer.timeout.connect(self._hide_unless_used)
        self.hide()

    def show_message(self, text: str) -> None:
        """Show what was done, and start the time in which it can be undone."""
        self._message.set_full_text(text)
        self.show()
        self._timer.start()
        QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self, text))

    @Slot()
    def _hide_unless_used(self) -> None:
        if self.underMouse() or self._button.hasFocus():
            self._timer.start()
        else:
            self.hide()

    @Slot()
    def _on_undo(self) -> None:
        self._timer.stop()
        self.hide()
        self.undone.emit()


def local_paths(mime: QMimeData) -> list[bytes]:
    """Return the paths of the dragged files and folders that are on this computer."""
    return [os.fsencode(url.toLocalFile()) for url in mime.urls() if url.isLocalFile()]


class DropZone(QWidget):
    """Accepts drops on a widget, which a frame marks; `dropped` reports the paths as bytes."""

    dropped = Signal(object)

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.hide()
        self._target = widget
        self._paths: Sequence[bytes] = ()
        widget.setAcceptDrops(True)
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        match event.type():
            case QEvent.Type.DragEnter | QEvent.Type.DragMove | QEvent.Type.Drop:
                return self._accept(cast("QDropEvent", event))
            case QEvent.Type.DragLeave:
                self.hide()
            case QEvent.Type.Resize:
                self.setGeometry(self._target.rect())
            case _:
                pass
        return super().eventFilter(watched, event)

    def _accept(self, event: QDropEvent) -> bool:
        """Accept local files: show the frame while they are dragged, and take them at the end."""
        dropped, paths = event.type() == QEvent.Type.Drop, local_paths(event.mimeData())
        self.setGeometry(self._target.rect())
        self.setVisible(bool(paths) and not dropped)
        self.raise_()
        if not paths:
            return False
        event.setDropAction(Qt.DropAction.CopyAction)
        event.accept()
        if dropped:
            self._paths = paths
            QTimer.singleShot(0, self._emit_dropped)  # the source program waits until this returns
        return True

    @Slot()
    def _emit_dropped(self) -> None:
        self.dropped.emit(self._paths)

    def paintEvent(self, event: QPaintEvent) -> None:
        step = self.fontMetrics().height() / 2
        background = QColor(self.palette().window().color())
        background.setAlphaF(0.85)
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(self.rect(), background)
        painter.setPen(QPen(colours.accent(), step / 3, Qt.PenStyle.DashLine))
        inner = QRectF(self.rect()).adjusted(step, step, -step, -step)
        painter.drawRoundedRect(inner, step, step)
        font = self.font()
        font.setPointSizeF(font.pointSizeF() * metrics.TITLE)
        font.setBold(True)
        painter.setFont(font)
        painter.setPen(self.palette().windowText().color())
        said = translate("DropFrame", "Drop to upload")
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, said)


class PathLineEdit(QLineEdit):
    """A text field that passes drops to its parent, where others insert the path as text."""

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if local_paths(event.mimeData()):
            event.ignore()
        else:
            super().dragEnterEvent(event)


class TextArea(QPlainTextEdit):
    """A field for several lines, whose text is as far from the frame as in a field for one."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.document().setDocumentMargin(2)


class Prompt(QMessageBox):
    """A question or a warning that is wide enough to be read, with an icon of the program."""

    def setInformativeText(self, text: str) -> None:
        super().setInformativeText(text)
        label = self.findChild(QLabel, "qt_msgbox_informativelabel")
        if isinstance(label, QLabel):
            label.setMinimumWidth(self.fontMetrics().averageCharWidth() * PROMPT_WIDTH)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self.setIcon(self.icon())  # in the colours of the new palette


class Question(Prompt):
    """Asks whether to do something; `confirmed` reports what, if the user agrees.

    Return and Escape mean not to.
    """

    confirmed = Signal(object)

    def __init__(self, about: object, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setIcon(Prompt.Icon.Question)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self._about = about
        self._yes: QPushButton | None = None
        self.buttonClicked.connect(self._answer)

    def offer(
        self, yes: str, no: str, role: QMessageBox.ButtonRole = Prompt.ButtonRole.DestructiveRole
    ) -> None:
        """Add the two buttons."""
        self._yes = self.addButton(yes, role)
        refusal = self.addButton(no, Prompt.ButtonRole.RejectRole)
        self.setDefaultButton(refusal)
        self.setEscapeButton(refusal)

    @Slot(QAbstractButton)
    def _answer(self, button: QAbstractButton) -> None:
        if button is self._yes:
            self.confirmed.emit(self._about)


PathCallback = Callable[[str], object]


def choose_file(
    parent: QWidget,
    title: str,
    on_chosen: PathCallback,
    *,
    start: str = "",
    kinds: Sequence[str] = (),
    new: bool = False,
) -> None:
    """Open a dialog for a file, existing or new, and report its path if one is chosen."""
    dialog = QFileDialog(parent, title, start)
    if new:
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    else:
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    if kinds:
        dialog.setNameFilters(kinds)
    _open(dialog, on_chosen)


def choose_folder(parent: QWidget, title: str, on_chosen: PathCallback, *, start: str = "") -> None:
    """Open a dialog for an existing folder, and report its path if one is chosen."""
    dialog = QFileDialog(parent, title, start)
    dialog.setFileMode(QFileDialog.FileMode.Directory)
    dialog.setOption(QFileDialog.Option.ShowDirsOnly)
    _open(dialog, on_chosen)


class _TargetDialog(QFileDialog):
    """Asks where to write a file; names without an ending get that of the chosen kind."""

    @Slot(str)
    def follow_kind(self, kind: str) -> None:
        self.setDefaultSuffix(kind.rpartition("*.")[2].rstrip(")"))


def choose_target(
    parent: QWidget,
    title: str,
    on_chosen: PathCallback,
    *,
    name: str,
    kinds: Sequence[str],
    start: str = "",
) -> None:
    """Open a dialog for a file to write, of one of these kinds, and report its path."""
    dialog = _TargetDialog(parent, title, start)
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setNameFilters(kinds)
    dialog.follow_kind(kinds[0])
    dialog.selectFile(name)
    dialog.filterSelected.connect(dialog.follow_kind)
    _open(dialog, on_chosen)


def _open(dialog: QFileDialog, on_chosen: PathCallback) -> None:
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.fileSelected.connect(on_chosen)
    dialog.open()
