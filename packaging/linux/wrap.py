"""Package the bundle for Linux: a tarball, and a .deb for Debian and Ubuntu.

python packaging/linux/wrap.py BUNDLE ICONS DIST
"""

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from mydata_like import __version__

LINUX = Path(__file__).parent
NAME = "mydata-like"
SHARE = "usr/share"
# The installed paths of files of this folder.
PLACES = {
    "mydata-like.desktop": f"{SHARE}/applications/mydata-like.desktop",
    "org.mydata_like.mydata_like.metainfo.xml": (
        f"{SHARE}/metainfo/org.mydata_like.mydata_like.metainfo.xml"
    ),
    "mydata-like.1": f"{SHARE}/man/man1/mydata-like.1",
    "mydata-like.service": "usr/lib/systemd/user/mydata-like.service",
    "mydata-like-autostart.desktop": f"{SHARE}/doc/mydata-like/examples/autostart.desktop",
    "copyright": f"{SHARE}/doc/mydata-like/copyright",
    "../../docs/admin/settings.toml": f"{SHARE}/doc/mydata-like/examples/settings.toml",
}
CONTROL = """\
Package: mydata-like
Version: {version}
Architecture: {architecture}
Maintainer: The mydata-like developers <mydata-like@localhost>
Installed-Size: {size}
Depends: libc6 (>= {libc}), libgl1, libegl1, libfontconfig1, ca-certificates
Recommends: fonts-dejavu-core
Suggests: openssh-client
Section: science
Priority: optional
Description: Upload research data to a MyTardis server
 mydata-like uploads research data from instrument PCs to a MyTardis server,
 and verifies every byte. It has a window, a tray icon and a command line with
 all functions.
"""


def copy_files(root: Path, bundle: Path, icons: Path) -> None:
    """Copy all files to their installed paths below `root`."""
    shutil.copytree(bundle, root / "opt" / NAME, symlinks=True)
    command = root / "usr" / "bin" / NAME
    command.parent.mkdir(parents=True)
    command.symlink_to(f"../../opt/{NAME}/{NAME}")
    for source, place in PLACES.items():
        target = root / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(LINUX / source, target)
    pictures = root / SHARE / "icons" / "hicolor"
    for picture in icons.glob("*.png"):
        target = pictures / f"{picture.stem}x{picture.stem}" / "apps" / f"{NAME}.png"
        target.parent.mkdir(parents=True)
        shutil.copyfile(picture, target)
    drawing = pictures / "scalable" / "apps" / f"{NAME}.svg"
    drawing.parent.mkdir(parents=True)
    shutil.copyfile(LINUX.parents[1] / "resources" / "icons" / "app.svg", drawing)


def make_package(root: Path, target: Path, architecture: str) -> None:
    """Build a .deb from the files below a folder; root owns all of them."""
    size = sum(file.lstat().st_size for file in root.rglob("*"))
    libc = ask("getconf", "GNU_LIBC_VERSION").split()[1]
    control = CONTROL.format(
        version=__version__, architecture=architecture, size=size // 1024, libc=libc
    )
    (root / "DEBIAN").mkdir()
    (root / "DEBIAN" / "control").write_text(control)
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    words = ("dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(root), str(target))
    subprocess.run(words, check=True)


def make_tarball(bundle: Path, target: Path) -> None:
    """Make a tarball of the bundle, which runs from any folder."""
    with tarfile.open(target, "w:xz", preset=6) as tarball:
        tarball.add(bundle, arcname=f"{NAME}-{__version__}", filter=_of_root)


def _of_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member


def ask(*words: str) -> str:
    """Return the output of a command."""
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def main(bundle: Path, icons: Path, dist: Path) -> None:
    """Make the tarball and, if dpkg-deb is installed, the .deb."""
    machine = ask("uname", "-m")
    make_tarball(bundle, dist / f"{NAME}-{__version__}-linux-{machine}.tar.xz")
    if shutil.which("dpkg-deb"):
        architecture = ask("dpkg", "--print-architecture")
        with TemporaryDirectory() as folder:
            root = Path(folder) / NAME
            copy_files(root, bundle, icons)
            make_package(root, dist / f"{NAME}_{__version__}_{architecture}.deb", architecture)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
