"""A thin bar below the text of a cell: how far something has come."""

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPalette
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from mydata_like.gui.look.palette import Status, status_colour

FRACTION = Qt.ItemDataRole.UserRole + 1  # of 1; none where there is nothing to show
STATUS = Qt.ItemDataRole.UserRole + 2  # the colour's name, as of `look.palette`


class BarDelegate(QStyledItemDelegate):
    """Paints the text as ever, and a bar along the lower edge; the text says the same."""

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        super().paint(painter, option, index)
        fraction = index.data(FRACTION)
        if fraction is None:
            return
        thick = max(2.0, option.fontMetrics.height() / 6)
        place = QRectF(option.rect)
        side = thick * 2
        bar = QRectF(
            place.left() + side, place.bottom() - thick * 1.5, place.width() - 2 * side, thick
        )
        self._draw(painter, option, bar, fraction, index.data(STATUS) or "working")

    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        size = super().sizeHint(option, index)
        height = option.fontMetrics.height()
        return QSize(size.width(), round(height * 1.9))

    def _draw(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        bar: QRectF,
        fraction: float,
        status: Status,
    ) -> None:
        selected = option.state & QStyle.StateFlag.State_Selected
        palette = option.palette
        behind = QPalette.ColorRole.Highlight if selected else QPalette.ColorRole.Mid
        colour = palette.color(QPalette.ColorRole.HighlightedText)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(palette.color(behind))
        painter.drawRoundedRect(bar, bar.height() / 2, bar.height() / 2)
        painter.setBrush(colour if selected else status_colour(status))
        done = QRectF(bar.left(), bar.top(), bar.width() * min(1.0, fraction), bar.height())
        painter.drawRoundedRect(done, bar.height() / 2, bar.height() / 2)
        painter.restore()
