"""Package the bundle for Linux: a tarball, a .deb for Debian and Ubuntu, a .rpm for Fedora and EL.

python packaging/linux/wrap.py BUNDLE ICONS DIST [--release]

Each is made where its tool is installed. SOURCE_DATE_EPOCH sets all times in them. Releases are
compressed by xz, others by gzip, which is ten times as fast.
"""

import gzip
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from glibc import find_needed

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
SUMMARY = "Carry research data from instruments to storage"
DESCRIPTION = """\
mydata-like uploads research data from instrument PCs to a host, folder, bucket
or MyTardis server, and verifies every byte. It has a window, a tray icon and a
command line with all functions."""
CONTROL = """\
Package: mydata-like
Version: {version}
Architecture: {architecture}
Maintainer: {maintainer}
Installed-Size: {size}
Depends: libc6 (>= {libc}), libgcc-s1, libstdc++6 (>= 11), libgl1, libegl1, libxcb1,
 libfontconfig1, libfreetype6, libexpat1, ca-certificates
Recommends: fonts-dejavu-core
Suggests: openssh-client
Section: science
Priority: optional
Description: {summary}
{description}
"""
SPEC = """\
Name: mydata-like
Version: {version}
Release: 1
Summary: {summary}
License: Apache-2.0
Requires: glibc >= {libc}, libgcc, libstdc++ >= 11, libglvnd-glx, libglvnd-egl, libxcb
Requires: fontconfig, freetype, expat, ca-certificates
Recommends: dejavu-sans-fonts
AutoReqProv: no

%description
{description}

%preun
{preun}

%files
%defattr(-,root,root)
/opt/mydata-like
/usr/bin/mydata-like
/usr/lib/systemd/user/mydata-like.service
/usr/share/applications/mydata-like.desktop
/usr/share/icons/hicolor/*/apps/mydata-like.*
/usr/share/man/man1/mydata-like.1*
/usr/share/metainfo/*.xml
%doc /usr/share/doc/mydata-like
"""
# The files are packed as they are, with the times of the release, on no named computer.
RPM = {
    "__os_install_post": "%{nil}",
    "_build_id_links": "none",
    "_buildhost": "localhost",
    "clamp_mtime_to_source_date_epoch": "1",
    "use_source_date_epoch_as_buildtime": "1",
}
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH") or LINUX.stat().st_mtime)


def copy_files(root: Path, bundle: Path, icons: Path) -> None:
    """Copy all files to their installed paths below `root`; all may read them, none write."""
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
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        os.utime(path, (EPOCH, EPOCH), follow_symlinks=False)


def make_deb(root: Path, dist: Path, libc: str, compression: str) -> None:
    """Build a .deb from the files below a folder; root owns all of them."""
    size = sum(file.lstat().st_size for file in root.rglob("*")) // 1024
    architecture = ask("dpkg", "--print-architecture")
    control = CONTROL.format(
        version=__version__,
        architecture=architecture,
        size=size,
        libc=libc,
        maintainer="{name} <{email}>".format_map(find_author()),
        summary=SUMMARY,
        description="\n".join(f" {line}" for line in DESCRIPTION.splitlines()),
    )
    home = root / "DEBIAN"
    home.mkdir()
    (home / "control").write_text(control)
    shutil.copy(LINUX / "before_removal.sh", home / "prerm")
    target = dist / f"{NAME}_{__version__}_{architecture}.deb"
    words = ("dpkg-deb", "--root-owner-group", f"-Z{compression}", "--build", root, target)
    subprocess.run(words, check=True)
    shutil.rmtree(home)


def find_author() -> dict[str, str]:
    """Return the name and the address of those who make the program."""
    file = LINUX.parents[1] / "pyproject.toml"
    project = tomllib.loads(file.read_text("utf-8"))["project"]
    (author,) = project["authors"]
    return dict(author)


def make_rpm(root: Path, dist: Path, libc: str, compression: str) -> None:
    """Build a .rpm from the same files."""
    script = (LINUX / "before_removal.sh").read_text("utf-8").partition("\n")[2]
    spec = SPEC.format(
        version=__version__, libc=libc, summary=SUMMARY, description=DESCRIPTION, preun=script
    )
    payload = {"xz": "w6.xzdio", "gzip": "w6.gzdio"}[compression]
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"{NAME}.spec"
        file.write_text(spec)
        defined = RPM | {"_binary_payload": payload, "_topdir": folder, "_rpmdir": str(dist)}
        defined["_rpmfilename"] = "%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm"
        options = [f"--define={name} {value}" for name, value in defined.items()]
        # It removes the folder when it is done.
        copy = Path(folder) / "root"
        shutil.copytree(root, copy, symlinks=True)
        words = ("rpmbuild", "-bb", "--quiet", "--buildroot", copy, *options, file)
        subprocess.run(words, check=True)


def make_tarball(root: Path, dist: Path, compression: str) -> None:
    """Make a tarball that runs from any folder, with what its install.sh puts into the menu."""
    ending = {"xz": "xz", "gzip": "gz"}[compression]
    target = dist / f"{NAME}-{__version__}-linux-{ask('uname', '-m')}.tar.{ending}"
    top = f"{NAME}-{__version__}"
    with ExitStack() as opened:
        if compression == "xz":
            packed: IO[bytes] = opened.enter_context(lzma.open(target, "wb", preset=6))
        else:
            file = opened.enter_context(target.open("wb"))
            packed = opened.enter_context(gzip.GzipFile("", "wb", 6, file, EPOCH))
        tarball = opened.enter_context(tarfile.open(fileobj=packed, mode="w"))
        tarball.add(root / "opt" / NAME, arcname=top, filter=_of_root)
        for part in ("applications", "icons", "man"):
            tarball.add(root / SHARE / part, arcname=f"{top}/share/{part}", filter=_of_root)
        tarball.add(LINUX / "install.sh", arcname=f"{top}/install.sh", filter=_of_root)


def _of_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    member.mtime = EPOCH
    return member


def ask(*words: str) -> str:
    """Return the output of a command."""
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def main(bundle: Path, icons: Path, dist: Path, *options: str) -> None:
    """Make all packages."""
    compression = "xz" if "--release" in options else "gzip"
    os.environ["SOURCE_DATE_EPOCH"] = str(EPOCH)
    libc = find_needed(bundle)
    with TemporaryDirectory() as folder:
        root = Path(folder) / NAME
        copy_files(root, bundle, icons)
        make_tarball(root, dist, compression)
        if shutil.which("dpkg-deb"):
            make_deb(root, dist, libc, compression)
        if shutil.which("rpmbuild"):
            make_rpm(root, dist, libc, compression)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]), *sys.argv[4:])
