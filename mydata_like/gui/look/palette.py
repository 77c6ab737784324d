"""Light or dark, as the person or the system wishes, and followed while the program runs."""

from typing import Literal

from PySide6.QtCore import QObject, Qt, Slot
from PySide6.QtGui import QColor, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication, QToolTip

from mydata_like.gui.look.shades import ALL, DARK, LIGHT, STRONG_DARK, STRONG_LIGHT, Shades
from mydata_like.gui.look.style import Style

Theme = Literal["system", "light", "dark"]
Status = Literal["good", "working", "waiting", "problem", "skipped"]

_SHADES_BY_WINDOW = {shades.window + shades.base + shades.text: shades for shades in ALL}


def apply(app: QApplication, theme: Theme) -> None:
    """Give the program its colours, now and whenever the system changes its own."""
    follower = app.findChild(_Follower) or _Follower(app)
    follower.follow(theme)


def current_shades() -> Shades:
    """Return the colours in force, told by the program's palette."""
    palette = QGuiApplication.palette()
    roles = (palette.window(), palette.base(), palette.text())
    dark = palette.window().color().lightness() < palette.windowText().color().lightness()
    return _SHADES_BY_WINDOW.get(
        "".join(brush.color().name() for brush in roles), DARK if dark else LIGHT
    )


def status_colour(status: Status) -> QColor:
    """Return the colour of a status for text, icons and bars, on what is behind them now."""
    return QColor(getattr(current_shades(), status))


def accent() -> QColor:
    """Return the one colour that says: here, this."""
    return QColor(current_shades().accent)


def quiet() -> QColor:
    """Return the colour of text that explains other text."""
    return QColor(current_shades().quiet)


def build_palette(shades: Shades) -> QPalette:
    """Return Qt's palette of these colours, each role set so that no system mixes in its own."""
    palette = QPalette()
    for role, colour in _roles(shades).items():
        palette.setColor(role, QColor(colour))
    for role in _WRITING:
        palette.setColor(QPalette.ColorGroup.Disabled, role, QColor(shades.disabled))
    muted = QPalette.ColorGroup.Disabled
    palette.setColor(muted, QPalette.ColorRole.Base, QColor(shades.window))
    palette.setColor(muted, QPalette.ColorRole.Highlight, QColor(shades.disabled))
    palette.setColor(muted, QPalette.ColorRole.HighlightedText, QColor(shades.base))
    return palette


_WRITING = (
    QPalette.ColorRole.WindowText,
    QPalette.ColorRole.Text,
    QPalette.ColorRole.ButtonText,
    QPalette.ColorRole.PlaceholderText,
    QPalette.ColorRole.Link,
    QPalette.ColorRole.LinkVisited,
)


def _roles(shades: Shades) -> dict[QPalette.ColorRole, str]:
    role = QPalette.ColorRole
    line = QColor(shades.line)
    return {
        role.Window: shades.window,
        role.WindowText: shades.text,
        role.Base: shades.base,
        role.AlternateBase: shades.alternate,
        role.Text: shades.text,
        role.PlaceholderText: shades.quiet,
        role.Button: shades.button,
        role.ButtonText: shades.text,
        role.BrightText: shades.problem,
        role.Light: QColor(shades.button).lighter(110).name(),
        role.Midlight: shades.button,
        role.Mid: shades.line,
        role.Dark: line.darker(120).name(),
        role.Shadow: line.darker(200).name(),
        role.Highlight: shades.highlight,
        role.HighlightedText: shades.highlighted,
        role.Accent: shades.highlight,
        role.Link: shades.accent,
        role.LinkVisited: shades.accent,
        role.ToolTipBase: shades.base,
        role.ToolTipText: shades.text,
    }


class _Follower(QObject):
    """Follows the theme that was chosen and what the system says of light, dark and contrast."""

    def __init__(self, app: QApplication) -> None:
        super().__init__(app)
        self._app = app
        self._theme: Theme = "system"
        app.setStyle(Style())
        self._hints = app.styleHints()
        self._hints.colorSchemeChanged.connect(self.repaint)
        self._hints.accessibility().contrastPreferenceChanged.connect(self.repaint)

    def follow(self, theme: Theme) -> None:
        """Take this theme; the system's own parts (title bars, file dialogs) take it too."""
        self._theme = theme
        if theme == "system":
            self._hints.unsetColorScheme()
        else:
            self._hints.setColorScheme(
                Qt.ColorScheme.Dark if theme == "dark" else Qt.ColorScheme.Light
            )
        self.repaint()

    @Slot()
    def repaint(self) -> None:
        """Set the colours, unless they are set."""
        palette = build_palette(self._choose())
        if palette != self._app.palette():
            self._app.setPalette(palette)
            QToolTip.setPalette(palette)

    def _choose(self) -> Shades:
        wishes = self._hints.accessibility().contrastPreference()
        strong = wishes == Qt.ContrastPreference.HighContrast
        if self._is_dark():
            return STRONG_DARK if strong else DARK
        return STRONG_LIGHT if strong else LIGHT

    def _is_dark(self) -> bool:
        if self._theme == "system":
            return self._hints.colorScheme() == Qt.ColorScheme.Dark
        return self._theme == "dark"
