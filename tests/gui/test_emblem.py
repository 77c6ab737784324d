"""The tray's icon: states differ by shape, and stand out on every panel."""

import itertools

import pytest
from PySide6.QtGui import QColor

from mydata_like.gui.tray.tray_icon import COLOURS, SIZES, TrayIcon, TrayState, draw_icon

EMBLEMS = [
    *map(TrayIcon, TrayState),
    TrayIcon(TrayState.WORKING, 0),
    TrayIcon(TrayState.WORKING, 50),
]
PANELS = ("#ffffff", "#1e1e1e")
SEEN = 0.06  # of all pixels: so many have to differ at the smallest size


@pytest.mark.parametrize("pair", list(itertools.combinations(EMBLEMS, 2)), ids=str)
def test_states_differ_by_shape_and_not_only_by_colour(qapp, pair):
    size = min(SIZES)
    one, other = (_opacities(emblem, size) for emblem in pair)

    different = sum(abs(a - b) > 80 for a, b in zip(one, other, strict=True))
    assert different > SEEN * size * size


@pytest.mark.parametrize("panel", PANELS)
@pytest.mark.parametrize("shape", TrayState)
def test_every_colour_stands_out_on_light_and_dark_panels(shape, panel):
    assert _contrast(COLOURS[shape], panel) >= 3


@pytest.mark.parametrize(
    ("share", "percent"), [(None, None), (0, 0), (0.049, 0), (0.5, 50), (0.999, 95), (2, 100)]
)
def test_a_ring_moves_in_steps_that_are_seen(share, percent):
    assert TrayIcon.of(TrayState.WORKING, share) == TrayIcon(TrayState.WORKING, percent)


def test_only_work_has_a_share():
    assert TrayIcon.of(TrayState.PAUSED, 0.5) == TrayIcon(TrayState.PAUSED)


def _opacities(emblem, size):
    image = draw_icon(emblem).pixmap(size, size).toImage()
    return [image.pixelColor(x, y).alpha() for x in range(size) for y in range(size)]


def _contrast(one, other):
    light, dark = sorted(map(_luminance, (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(name):
    colour = QColor(name)
    parts = (colour.redF(), colour.greenF(), colour.blueF())
    linear = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
