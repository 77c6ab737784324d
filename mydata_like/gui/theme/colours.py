"""The colours of the light and the dark theme, and of those with a strong contrast."""

from dataclasses import dataclass, replace
from typing import Literal

from PySide6.QtGui import QColor, QGuiApplication, QPalette


@dataclass(frozen=True)
class Shades:
    """A set of matching colours, each as #rrggbb."""

    window: str
    base: str
    alternate: str
    button: str
    line: str  # of what only separates
    edge: str  # of what can be clicked or typed in: 3 : 1 to window and base
    text: str
    quiet: str
    disabled: str
    highlight: str
    highlighted: str
    accent: str
    good: str
    waiting: str
    problem: str

    @property
    def working(self) -> str:
        """The colour of active work: the program's accent colour."""
        return self.accent

    @property
    def skipped(self) -> str:
        """The unobtrusive colour of skipped files."""
        return self.quiet


LIGHT = Shades(
    window="#f4f6f9",
    base="#ffffff",
    alternate="#f1f4f9",
    button="#fbfcfd",
    line="#c3cad5",
    edge="#7d8796",
    text="#1b2430",
    quiet="#566273",
    disabled="#7e8896",
    highlight="#0b60c4",
    highlighted="#ffffff",
    accent="#0b60c4",
    good="#16763a",
    waiting="#8a5700",
    problem="#bf2318",
)
DARK = Shades(
    window="#171b21",
    base="#222832",
    alternate="#272e38",
    button="#303844",
    line="#3d4653",
    edge="#7e8997",
    text="#e6ebf2",
    quiet="#a3afbf",
    disabled="#7b8797",
    highlight="#2f73ce",
    highlighted="#ffffff",
    accent="#6db3ff",
    good="#5fcf85",
    waiting="#e9b44c",
    problem="#ff8a7d",
)
STRONG_LIGHT = replace(
    LIGHT,
    window="#ffffff",
    alternate="#ffffff",
    button="#ffffff",
    line="#000000",
    edge="#000000",
    text="#000000",
    quiet="#2f3741",
    disabled="#5c6570",
    highlight="#003f8c",
    accent="#003f8c",
    good="#00501f",
    waiting="#5c3900",
    problem="#8c0f08",
)
STRONG_DARK = replace(
    DARK,
    window="#000000",
    base="#000000",
    alternate="#000000",
    button="#0d0f12",
    line="#ffffff",
    edge="#ffffff",
    text="#ffffff",
    quiet="#d2dae4",
    disabled="#98a3b1",
    highlight="#9ccbff",
    highlighted="#000000",
    accent="#9ccbff",
    good="#86e8a8",
    waiting="#ffd27a",
    problem="#ffb3aa",
)

ALL = (LIGHT, DARK, STRONG_LIGHT, STRONG_DARK)


Theme = Literal["system", "light", "dark"]
Status = Literal["good", "working", "waiting", "problem", "skipped"]

_SHADES_BY_WINDOW = {shades.window + shades.base + shades.text: shades for shades in ALL}


def current_shades() -> Shades:
    """Return the active colours, as derived from the program's palette."""
    palette = QGuiApplication.palette()
    roles = (palette.window(), palette.base(), palette.text())
    dark = palette.window().color().lightness() < palette.windowText().color().lightness()
    return _SHADES_BY_WINDOW.get(
        "".join(brush.color().name() for brush in roles), DARK if dark else LIGHT
    )


def status_colour(status: Status) -> QColor:
    """Return the colour of a status for text, icons and bars on the current background."""
    return QColor(getattr(current_shades(), status))


def accent() -> QColor:
    """Return the accent colour for highlights."""
    return QColor(current_shades().accent)


def quiet() -> QColor:
    """Return the colour of secondary text."""
    return QColor(current_shades().quiet)


def build_palette(shades: Shades) -> QPalette:
    """Return a Qt palette of these colours that overrides every system colour."""
    palette = QPalette()
    for role, colour in _roles(shades).items():
        palette.setColor(role, QColor(colour))
    for role in _TEXT_ROLES:
        palette.setColor(QPalette.ColorGroup.Disabled, role, QColor(shades.disabled))
    muted = QPalette.ColorGroup.Disabled
    palette.setColor(muted, QPalette.ColorRole.Base, QColor(shades.window))
    palette.setColor(muted, QPalette.ColorRole.Highlight, QColor(shades.disabled))
    palette.setColor(muted, QPalette.ColorRole.HighlightedText, QColor(shades.base))
    return palette


_TEXT_ROLES = (
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
