"""The list of pages at the window's left side."""

from collections.abc import Iterable

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QIcon, QPainter, QPalette
from PySide6.QtWidgets import (
    QFrame,
    QListWidget,
    QListWidgetItem,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from mydata_like.gui.look.icons import icon, size_beside_text
from mydata_like.gui.pages.catalogue import Leaf

Index = QModelIndex | QPersistentModelIndex


class Navigation(QListWidget):
    """One row a page; it stands on the window's own ground, only the chosen row stands out."""

    def __init__(self, leaves: Iterable[Leaf], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("Pages"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setBackgroundRole(QPalette.ColorRole.Window)
        self.setItemDelegate(_Row(self))
        self.setIconSize(size_beside_text(self))
        self.setMouseTracking(True)
        for leaf in leaves:
            self.addItem(QListWidgetItem(icon(leaf.icon), leaf.title))
        self.setFixedWidth(self.sizeHintForColumn(0) + self.iconSize().width())


class _Row(QStyledItemDelegate):
    """A row with room around it, rounded where it is chosen."""

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        wanted = super().sizeHint(option, index)
        height = round(option.fontMetrics.height() * 2.2)
        return QSize(wanted.width() + height, height)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        self.initStyleOption(option, index)
        gap = option.rect.height() // 6
        area = option.rect.adjusted(gap, gap // 4, -gap, -gap // 4)
        chosen = bool(option.state & QStyle.StateFlag.State_Selected)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        self._paint_ground(painter, option, area)
        side = option.decorationSize.width()
        area.adjust(gap, 0, -gap, 0)
        mode = QIcon.Mode.Selected if chosen else QIcon.Mode.Normal
        square = QRect(area.left(), area.top(), side, area.height())
        option.icon.paint(painter, square, Qt.AlignmentFlag.AlignCenter, mode)
        role = QPalette.ColorRole.HighlightedText if chosen else QPalette.ColorRole.WindowText
        painter.setPen(option.palette.color(role))
        area.adjust(side + gap, 0, 0, 0)
        painter.drawText(area, Qt.AlignmentFlag.AlignVCenter, option.text)
        painter.restore()

    def _paint_ground(self, painter: QPainter, option: QStyleOptionViewItem, area: QRect) -> None:
        """Mark the chosen row and the one below the mouse; a frame tells where the keys go."""
        role = QPalette.ColorRole
        flags = QStyle.StateFlag
        painter.setPen(Qt.PenStyle.NoPen)
        if option.state & flags.State_Selected:
            painter.setBrush(option.palette.brush(role.Highlight))
        elif option.state & flags.State_MouseOver:
            painter.setBrush(option.palette.brush(role.Base))
        if option.state & flags.State_HasFocus:
            painter.setPen(option.palette.color(role.WindowText))
        round_by = area.height() / 6
        painter.drawRoundedRect(QRectF(area).adjusted(0.5, 0.5, -0.5, -0.5), round_by, round_by)
