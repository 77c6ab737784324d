"""Screenshots of the real program for the documentation, in light and dark: `make screenshots`.

The program runs offscreen with an embedded server, which is given a facility's name in the
pictures. Every scene of tests/gui/scenes.py is taken in its state of the program. The picture of
the README is composed of two of them, with the title bar that a desktop adds.
`python -m tests.pictures NAME...` takes only the named scenes; `--scale` sets the pixels of the
screen for each of the window, `--size` those of the window, `--into` the folder.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from functools import partial
from pathlib import Path

os.environ["QT_QPA_PLATFORM"] = f"offscreen:configfile={Path(__file__).with_name('screen.json')}"

from PySide6.QtCore import QEventLoop, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QImage, QPainter, QPen
from PySide6.QtWidgets import QApplication, QWidget

from mydata_like.app.settings_service import save_settings
from mydata_like.demo.fixtures import make_samples
from mydata_like.gui.application import Program
from mydata_like.gui.launch_options import LaunchOptions
from mydata_like.gui.overview.route_row import RouteRow
from mydata_like.gui.theme import colours, style
from mydata_like.gui.theme_settings import set_language
from mydata_like.ssh.keys import create_key
from tests.gui.poses import pose
from tests.gui.scenes import Moment, Scene, Stage, list_scenes
from tests.site import Site, open_site

FOLDER = Path(__file__).parent.parent / "docs" / "images"
_OPENED: list[Program] = []  # kept, so that they are not collected in another thread
THEMES: tuple[colours.Theme, ...] = ("light", "dark")
SIZE = QSize(1100, 720)
LARGEST = 200_000  # bytes of a screenshot
UNUSUAL = "\u6f22\N{MICROSCOPE}"  # in names of the sample data; not every font has them
DEADLINE = 90.0  # seconds
SERVER = "data.example.org"
RUNNING, SAFE = "overview-running", "tray-popup-safe"
CAPTIONS = "While files are sent", "Later, in the tray"  # of both, in the picture of them
# The buttons of a title bar from the right, as lines in a square: close, maximise, minimise.
BUTTONS = (
    (((0, 0), (1, 1)), ((0, 1), (1, 0))),
    (((0, 0), (1, 0), (1, 1), (0, 1), (0, 0)),),
    (((0, 1), (1, 1)),),
)
SETTINGS = {
    "schedule.kind": "manual",
    "filters.settle_seconds": 60,
    "advanced.verify_interval": 0.2,
    "limits.bandwidth": 3.0,
    "instrument.name": "Confocal 2",
}


def main(names: list[str], folder: Path, scale: float, size: QSize = SIZE) -> int:
    """Take the screenshots and list them; return 1 if a font is missing or one is too large."""
    os.environ["QT_SCALE_FACTOR"] = str(scale)
    app = QApplication(sys.argv[:1])
    metrics = QFontMetrics(app.font())
    if not all(metrics.inFontUcs4(ord(letter)) for letter in UNUSUAL):
        print("Fonts for Chinese or emoji are missing; `make screenshots` installs them.")
        return 1
    app.setApplicationName("mydata-like")
    set_language(app, "en")
    scenes = [scene for scene in list_scenes() if not names or scene.name in names]
    folder.mkdir(parents=True, exist_ok=True)
    taken: list[Path] = []
    with _make_site() as site:
        for moment, prepare in MOMENTS.items():
            wanted = [scene for scene in scenes if scene.moment is moment]
            if wanted:
                style.apply(app, "light")
                taken += _shoot(app, prepare(site), wanted, folder, size)
    if {RUNNING, SAFE} <= {scene.name for scene in scenes}:
        taken += [_compose(folder, theme, scale) for theme in THEMES]
    for path in taken:
        print(f"{path.stat().st_size:8,}  {path.name}")
    return int(any(path.stat().st_size > LARGEST for path in taken))


@contextmanager
def _make_site() -> Iterator[Site]:
    """Open a site with names that suit screenshots, as soon as no other process uses them."""
    home = Path(tempfile.gettempdir()) / "confocal-2"
    os.environ["MYDATA_LIKE_HOME"] = str(home / "home")
    with home.with_suffix(".lock").open("w") as lock:
        flock(lock, LOCK_EX)
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        try:
            make_samples(home / "data", tiny_files=2400)
            _add_the_unusual(home / "data")
            with open_site(home) as site:
                save_settings(site.config, SETTINGS)
                yield site
        finally:
            shutil.rmtree(home)


def _add_the_unusual(data: Path) -> None:
    """Add large files, an unknown owner, a growing file, an excluded file and a link."""
    sheets = data / "alice" / "Light sheet 2024-05-02"
    sheets.mkdir()
    for number in range(12):
        (sheets / f"stack_{number:03d}.tif").write_bytes(os.urandom(6 << 20))
    stranger = data / "carol" / "Zebrafish day 3"
    stranger.mkdir(parents=True)
    for number in range(12):
        (stranger / f"stack_{number:03d}.tif").write_bytes(b"tiff" * 20_000)
    sparse = data / "bob" / "Long run" / "sparse.dat"
    sparse.write_bytes(os.urandom(1 << 20))  # without holes, which would be a peak in the chart
    for path in (sparse, sheets, *sheets.iterdir(), stranger, stranger.parent, *stranger.iterdir()):
        os.utime(path, (time.time() - 90_000, time.time() - 90_000))
    (data / "notes.txt").write_text("belongs to no dataset")
    (data / "alice" / "Tomogram 7" / "latest.raw").symlink_to("volume.raw")
    (data / "alice" / "Tomogram 7" / "Thumbs.db").write_bytes(b"thumbs")
    (data / "alice" / "Tomogram 7" / "still_growing.raw").write_bytes(b"raw" * 10_000)


def _shoot(
    app: QApplication, program: Program, scenes: list[Scene], folder: Path, size: QSize
) -> list[Path]:
    stage = Stage(program.window, program.context)
    program.window.resize(size)
    taken = []
    for scene in scenes:
        shown = scene.open(stage)
        for theme in THEMES:
            style.apply(app, theme)
            _wait(lambda: not program.tasks.busy)
            _name_server(shown)
            _rest(0.4)
            taken.append(_save(shown, folder / f"{scene.name}-{theme}.png"))
        if shown is not program.window:
            shown.close()
    program.window.hide()
    program.close()
    _OPENED.append(program)
    _wait(lambda: program.controller.engine is None)
    return taken


def _open_first_start(site: Site) -> Program:
    return _open(site.place.folder / "nowhere" / "settings.toml", "unset")


def _open_running(site: Site) -> Program:
    program = _open(site.config, "idle")
    program.controller.start()
    _wait(lambda: program.controller.state.sums.sent > 500)
    _rest(20)  # for a curve of the speed
    return program


def _open_posed(moment: Moment, site: Site) -> Program:
    """Open the program in a state that cannot be waited for."""
    program = _open_after(site)
    last = program.controller.state.last
    assert last is not None
    pose(program.controller, moment, last)
    return program


def _open_after(site: Site) -> Program:
    return _run(site, {"limits.bandwidth": 0})


def _open_safe(site: Site) -> Program:
    shutil.rmtree(site.data / "carol")
    (site.data / "notes.txt").unlink()
    program = _run(site, {"filters.settle_seconds": 0})
    _wait(lambda: not program.controller.state.at_risk.files)
    return program


def _open_host(site: Site) -> Program:
    """Open the program after a run to a host that has a name in the SSH configuration."""
    home, sshd = site.place.folder / "user", site.sshd
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    sshd.authorize(create_key(home / ".ssh" / "id_ed25519").public)
    lines = (f"HostName {sshd.host}", f"Port {sshd.port}", f"User {sshd.username}")
    (home / ".ssh" / "config").write_text("\n ".join(("Host store.example.org", *lines)) + "\n")
    os.environ["HOME"] = str(home)
    destination = {
        "destination.kind": "host",
        "destination.address": f"store.example.org:{site.place.folder}/there",
        "transfer.host_keys": [sshd.fingerprint],
        "filters.settle_seconds": 0,
        "limits.bandwidth": 0,
    }
    program = _run(site, destination)
    _rest(5)  # until the tables are read again
    return program


def _run(site: Site, choices: dict[str, object]) -> Program:
    save_settings(site.config, choices)
    program = _open(site.config, "idle")
    program.controller.start()
    before = program.controller.state.last
    _wait(lambda: program.controller.state.last not in (None, before))
    return program


def _open(config: Path, phase: str) -> Program:
    home = Path(os.environ["MYDATA_LIKE_HOME"])
    program = Program(LaunchOptions(config, config, state=home / "state", logs=home / "logs"))
    program.open()
    _wait(lambda: program.controller.state.phase == phase)
    return program


MOMENTS = {
    Moment.FIRST_START: _open_first_start,
    Moment.RUNNING: _open_running,
    Moment.AFTER: _open_after,
    Moment.PAUSED: partial(_open_posed, Moment.PAUSED),
    Moment.BROKEN: partial(_open_posed, Moment.BROKEN),
    Moment.SAFE: _open_safe,
    Moment.HOST: _open_host,
}


def _wait(condition: Callable[[], object]) -> None:
    end = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("the program did not reach the expected state")
        _rest(0.05)


def _rest(seconds: float) -> None:
    """Run the event loop for some seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        QApplication.processEvents(QEventLoop.ProcessEventsFlag.AllEvents, 20)
        time.sleep(0.005)


def _name_server(shown: QWidget) -> None:
    """Show the name that the server of a facility has in the place of this computer's address."""
    for route in shown.findChildren(RouteRow):
        if route._server.text().startswith("127.0.0.1"):
            route._show_name(route._server, SERVER, route._instrument.text())


def _compose(folder: Path, theme: colours.Theme, scale: float) -> Path:
    """Save the window with a title bar during a run, and the tray's pop-up after it."""
    window, popup = (QImage(str(folder / f"{name}-{theme}.png")) for name in (RUNNING, SAFE))
    shades = colours.DARK if theme == "dark" else colours.LIGHT
    bar, edge = round(34 * scale), round(28 * scale)
    canvas = QImage(
        window.width() + 2 * edge, window.height() + bar + 4 * edge, QImage.Format.Format_RGB32
    )
    canvas.fill(QColor("#0c0f13" if theme == "dark" else "#cfd8e4"))
    painter = QPainter(canvas)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    top, middle_of = QRect(edge, edge, window.width(), bar), Qt.AlignmentFlag.AlignCenter
    painter.fillRect(top, QColor(shades.button))
    painter.setPen(QPen(QColor(shades.text), scale))
    font = painter.font()
    font.setPixelSize(round(14 * scale))
    painter.setFont(font)
    painter.drawText(top, middle_of, "mydata-like")
    middle, half = top.center().y(), round(5 * scale)
    for number, lines in enumerate(BUTTONS):
        left = top.right() - round((number * 34 + 24) * scale)
        for line in lines:
            painter.drawPolyline(
                [QPoint(left + 2 * half * x, middle + half * (2 * y - 1)) for x, y in line]
            )
    painter.drawImage(edge, edge + bar, window)
    corner = QPoint(
        canvas.width() - popup.width() - edge // 2, canvas.height() - popup.height() - 2 * edge
    )
    painter.drawImage(corner, popup)
    foot = QRect(0, canvas.height() - 2 * edge, corner.x(), 2 * edge)
    painter.drawText(foot, middle_of, CAPTIONS[0])
    foot.moveLeft(corner.x())
    foot.setWidth(popup.width())
    painter.drawText(foot, middle_of, CAPTIONS[1])
    painter.setPen(QPen(QColor(shades.edge), scale))
    painter.drawRect(QRect(corner, popup.size()))
    painter.end()
    return _write(canvas, folder / f"desktop-{theme}.png")


def _save(shown: QWidget, path: Path) -> Path:
    return _write(shown.grab().toImage().convertToFormat(QImage.Format.Format_RGB32), path)


def _write(image: QImage, path: Path) -> Path:
    """Save a picture; if it is too large, reduce it to its 256 most frequent colours."""
    image.save(str(path), "PNG", 0)
    if path.stat().st_size > LARGEST:
        pixels = Counter(memoryview(image.constBits()).cast("I"))
        colours = [colour for colour, _ in pixels.most_common(256)]
        flags = Qt.ImageConversionFlag.ThresholdDither
        image.convertToFormat(QImage.Format.Format_Indexed8, colours, flags).save(
            str(path), "PNG", 0
        )
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar="SCENE")
    parser.add_argument("--scale", type=float, default=2)
    parser.add_argument("--into", type=Path, default=FOLDER)
    parser.add_argument("--size", type=int, nargs=2, default=(SIZE.width(), SIZE.height()))
    chosen = parser.parse_args()
    sys.exit(main(chosen.names, chosen.into, chosen.scale, QSize(*chosen.size)))
