"""Render the program's icon in all sizes that desktops need, from one drawing.

python packaging/icons.py FOLDER writes N.png for each size, mydata-like.ico (Windows) and
mydata-like.icns (macOS).
"""

import os
import struct
import sys
from pathlib import Path

os.environ["QT_QPA_PLATFORM"] = "offscreen"

from PySide6.QtCore import QBuffer, QIODevice
from PySide6.QtGui import QGuiApplication, QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

DRAWING = Path(__file__).parents[1] / "resources" / "icons" / "app.svg"
SIZES = (16, 22, 24, 32, 48, 64, 128, 256, 512, 1024)
WINDOWS = (16, 24, 32, 48, 64, 128, 256)
# The names of the sizes in an .icns file of macOS; all of these may be PNG.
MACOS = {16: b"icp4", 32: b"icp5", 64: b"icp6", 128: b"ic07", 256: b"ic08", 512: b"ic09"} | {
    1024: b"ic10"
}


def draw(size: int) -> bytes:
    """Return the icon as PNG."""
    image = QImage(size, size, QImage.Format.Format_ARGB32)
    image.fill(0)
    painter = QPainter(image)
    QSvgRenderer(str(DRAWING)).render(painter)
    painter.end()
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")
    return buffer.data().data()


def pack_ico(pictures: dict[int, bytes]) -> bytes:
    """Return an .ico file: a header, an entry for each picture, the pictures."""
    place = 6 + 16 * len(pictures)
    entries, body = b"", b""
    for size, picture in pictures.items():
        side = size % 256  # 0 means 256
        start = place + len(body)
        entries += struct.pack("<BBBBHHII", side, side, 0, 0, 1, 32, len(picture), start)
        body += picture
    return struct.pack("<HHH", 0, 1, len(pictures)) + entries + body


def pack_icns(pictures: dict[int, bytes]) -> bytes:
    """Return an .icns file: a header, then each picture after its name and length."""
    body = b"".join(
        MACOS[size] + struct.pack(">I", len(picture) + 8) + picture
        for size, picture in pictures.items()
    )
    return b"icns" + struct.pack(">I", len(body) + 8) + body


def main(folder: Path) -> None:
    """Write the icon in all sizes and formats."""
    application = QGuiApplication([])
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {size: draw(size) for size in SIZES}
    for size, picture in pictures.items():
        (folder / f"{size}.png").write_bytes(picture)
    (folder / "mydata-like.ico").write_bytes(pack_ico({size: pictures[size] for size in WINDOWS}))
    (folder / "mydata-like.icns").write_bytes(pack_icns({size: pictures[size] for size in MACOS}))
    del application


if __name__ == "__main__":
    main(Path(sys.argv[1]))
