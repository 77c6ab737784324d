"""Qt's Fusion style, the same on every system, with controls that are easy to hit."""

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QProxyStyle, QStyle, QStyleOption, QStyleOptionMenuItem, QWidget

LEAST = 24  # pixels at a scale of 1 that a target is high: WCAG 2.2, 2.5.8

_TARGETS = frozenset(
    {
        QStyle.ContentsType.CT_PushButton,
        QStyle.ContentsType.CT_ToolButton,
        QStyle.ContentsType.CT_CheckBox,
        QStyle.ContentsType.CT_RadioButton,
        QStyle.ContentsType.CT_ComboBox,
        QStyle.ContentsType.CT_LineEdit,
        QStyle.ContentsType.CT_SpinBox,
        QStyle.ContentsType.CT_TabBarTab,
        QStyle.ContentsType.CT_MenuItem,
        QStyle.ContentsType.CT_HeaderSection,
    }
)


class Style(QProxyStyle):
    """Fusion, in which nothing that is clicked is lower than 24 pixels."""

    def __init__(self) -> None:
        super().__init__("Fusion")

    def sizeFromContents(
        self,
        kind: QStyle.ContentsType,
        option: QStyleOption,
        size: QSize,
        widget: QWidget | None = None,  # PySide's hints do not know that it may be missing
    ) -> QSize:
        wanted = super().sizeFromContents(kind, option, size, widget)  # type: ignore[arg-type]
        if kind in _TARGETS and not _is_separator(option):
            wanted.setHeight(max(wanted.height(), LEAST))
        return wanted


def _is_separator(option: QStyleOption) -> bool:
    return (
        isinstance(option, QStyleOptionMenuItem)
        and option.menuItemType == QStyleOptionMenuItem.MenuItemType.Separator
    )
