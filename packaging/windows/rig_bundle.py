"""The step `bundle` of the rig: build the bundle under Windows, and run it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rig import Rig

LONGEST: Final = 3600.0  # seconds for the build; 5 minutes on two free cores
# Parts of Windows itself, of which the rig has stand-ins.
PARTS_OF_WINDOWS: Final = ("icuuc.dll", "bcryptprimitives.dll", "rstrtmgr.dll", "ucrtbase.dll")


def build_bundle(rig: Rig) -> None:
    """Build the bundle, and try the self-test, the demo and the window from it."""
    rig.run("packaging/build.py", "--here", timeout=LONGEST)  # ends with the self-test
    folder = rig.source / "dist" / "mydata-like"
    strangers = [name for name in PARTS_OF_WINDOWS if list(folder.rglob(name))]
    assert not strangers, f"the bundle contains parts of Windows: {strangers}"
    sizes = {file.name: file.stat().st_size for file in folder.glob("*.exe")}
    print(", ".join(f"{name}: {size / 1e6:.1f} MB" for name, size in sorted(sizes.items())))
    rig.execute(folder / "mydata-like.exe", "demo", "--no-window")
    home = rig.folder / "home"
    shutil.rmtree(home, ignore_errors=True)
    picture = rig.folder / "window.png"
    rig.run(
        *("packaging/windows/try_window.py", str(folder), str(picture)),
        MYDATA_LIKE_HOME=str(home),
    )
