"""The colours of the window: light and dark, and both once more with strong contrast.

Text of every shade has a contrast of 4.5 : 1 or more to the window, the fields and their alternate
rows (disabled text 3 : 1), strong ones 7 : 1; tests/gui/test_palette.py computes it.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Shades:
    """One set of colours that go together, each as #rrggbb."""

    window: str
    base: str
    alternate: str
    button: str
    line: str
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
        """What goes on has the colour of the program itself."""
        return self.accent

    @property
    def skipped(self) -> str:
        """What nobody waits for stays in the background."""
        return self.quiet


LIGHT = Shades(
    window="#f4f6f9",
    base="#ffffff",
    alternate="#f1f4f9",
    button="#fbfcfd",
    line="#c3cad5",
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
    window="#232932",
    base="#161a20",
    alternate="#1b2027",
    button="#303844",
    line="#48525f",
    text="#e6ebf2",
    quiet="#a3afbf",
    disabled="#7b8797",
    highlight="#2b6cc4",
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
