"""Install the service on Windows, start it as the Task Scheduler does, and remove it.

Run by the step `service` of `rig.py` in Windows' own Python. It changes the tasks and a folder of
the computer, and prints what it saw.
"""

import codecs
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from mydata_like.hostos.event_log import report_error
from mydata_like.hostos.service import TASK

HOME: Final = Path(r"C:\mydata-like-service")
# Windows and Wine keep the definitions of tasks here.
REGISTERED: Final = Path(r"C:\windows\system32\Tasks", TASK.strip("\\"))
NAMESPACE: Final = "{http://schemas.microsoft.com/windows/2004/02/mit/task}"
TIMEOUT: Final = 120.0
NO_CONSOLE: Final = getattr(subprocess, "DETACHED_PROCESS", 0)
SYSTEM: Final = ("--system", "--user", "SYSTEM", "--as-root")


def main() -> None:
    """Try a task of one user, and one that runs as SYSTEM."""
    shutil.rmtree(HOME, ignore_errors=True)
    for options in ((), SYSTEM):
        ask("--install", *options)
        ours = read_xml(HOME / "state" / "mydata-like-watch.xml")
        compare_settings(ours, read_xml(REGISTERED))
        start(ours)
        log = (HOME / "logs" / "mydata-like.log").read_text("utf-8")
        require("not set yet" in log, "the log does not say why")
        query()
        ask("--uninstall", *options)
        require(not REGISTERED.exists(), "the task is still registered")
    ask("--print", *SYSTEM[:-1], code=2)  # all rights are not confirmed
    ask("--print", "--system", "--user", "LOCAL SERVICE", code=2, home="")  # has other settings
    say("the Event Log takes an entry", report_error("A trial of mydata-like."))


def ask(*options: str, code: int = 0, home: str = str(HOME)) -> None:
    """Run `watch` with options that install, show or remove it; it must end with this code."""
    run = subprocess.run(
        [sys.executable, "-m", "mydata_like", "watch", *options],
        env=os.environ | {"MYDATA_LIKE_HOME": home},
        stdin=subprocess.DEVNULL,
        timeout=TIMEOUT,
        check=False,
    )
    require(run.returncode == code, f"watch {' '.join(options)} ended with {run.returncode}")


def read_xml(file: Path) -> ElementTree.Element:
    """Return a definition, which is in UTF-16 or UTF-8 with a byte order mark."""
    content = file.read_bytes()
    encoding = "utf-8-sig" if content.startswith(codecs.BOM_UTF8) else "utf-16"
    return ElementTree.fromstring(content.decode(encoding))


def compare_settings(ours: ElementTree.Element, registered: ElementTree.Element) -> None:
    """Check what the system has understood; Wine 8 keeps only simple settings."""
    before, after = read_settings(ours), read_settings(registered)
    require(
        all(before[name] == text for name, text in after.items() if name in before),
        f"the system has understood {after}",
    )
    say("settings that the system has understood", ", ".join(sorted(set(before) & set(after))))
    action = registered.findtext(f"{NAMESPACE}Actions/{NAMESPACE}Exec/{NAMESPACE}Command")
    say("the registered program", action or "none, as Wine 8 does not keep it")


def read_settings(task: ElementTree.Element) -> dict[str, str]:
    """Return the settings of a task that are plain texts."""
    found = task.find(f"{NAMESPACE}Settings")
    assert found is not None
    return {one.tag.removeprefix(NAMESPACE): one.text or "" for one in found if not len(one)}


def start(task: ElementTree.Element) -> None:
    """Start a task's program without settings, a console and standard streams."""
    action = task.find(f"{NAMESPACE}Actions/{NAMESPACE}Exec")
    assert action is not None
    names = ("Command", "Arguments", "WorkingDirectory")
    program, words, folder = (action.findtext(NAMESPACE + name, "") for name in names)
    ended = subprocess.run(
        f'"{program}" {words}', cwd=folder, creationflags=NO_CONSOLE, timeout=TIMEOUT, check=False
    )
    require(ended.returncode == 2, f"the task's program ended with {ended.returncode}")
    say("the task's program ends without settings, exit code", ended.returncode)


def query() -> None:
    """Print what the system says about the task; Wine 8 has no query, and says nothing."""
    command = ("schtasks", "/Query", "/TN", TASK)
    found = subprocess.run(command, capture_output=True, timeout=TIMEOUT, check=False)
    say("the system's answer to a query", found.stdout.decode(errors="replace").strip() or "none")


def say(what: str, how: object) -> None:
    """Print a result."""
    sys.stdout.write(f"{what}: {how}\n")
    sys.stdout.flush()


def require(condition: bool, otherwise: str) -> None:  # noqa: FBT001 - an assertion
    """End with a message unless a condition holds."""
    if not condition:
        sys.exit(otherwise)


if __name__ == "__main__":
    main()
