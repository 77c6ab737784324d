"""Puts a definition where the system looks for it, takes it away again, and makes it count."""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from mydata_like.core.errors import SettingsError
from mydata_like.settings.atomic_write import ensure_folder
from mydata_like.system.service import MARK, Definition, is_ours

_PATIENCE: Final = 60.0  # seconds that a command of the system may take
_SAID: Final = 300  # characters of what it said that are worth repeating


class Carried(NamedTuple):
    """A command of the system, and why it did not work (empty where it did)."""

    command: tuple[str, ...]
    problem: str


def write_definition(definition: Definition) -> None:
    """Put the file into its place; raises SettingsError where it cannot, or is not ours."""
    file = Path(definition.file)
    _require_ours(file)
    try:
        ensure_folder(file.parent)
        draft = file.with_name(f".{file.name}.new")
        draft.write_bytes(definition.content)
        draft.chmod(0o644)
        draft.replace(file)
    except OSError as error:
        raise SettingsError(
            f"{file} cannot be written: {error.strerror or error}.",
            hint="For a service of the whole computer run this as an administrator.",
        ) from error


def remove_definition(definition: Definition) -> bool:
    """Take the file away; return whether it was there. Raises SettingsError as writing does."""
    file = Path(definition.file)
    if not file.exists():
        return False
    _require_ours(file)
    try:
        file.unlink()
    except OSError as error:
        raise SettingsError(
            f"{file} cannot be removed: {error.strerror or error}.",
            hint="For a service of the whole computer run this as an administrator.",
        ) from error
    return True


def carry_out(commands: Iterable[tuple[str, ...]]) -> Iterator[Carried]:
    """Run commands of the system one after another, until one does not work."""
    for command in commands:
        problem = _run(command)
        yield Carried(command, problem)
        if problem:
            return


def make_folders_as(account: str, folders: Iterable[Path]) -> None:
    """Make the folders that are missing, with mode 0700, as an account of this computer would.

    Another account than one's own takes root, whose rights are not used: the folders lie in a
    home, where links could lead elsewhere. Raises SettingsError where the account may not.
    """
    missing = [str(folder) for folder in folders if not folder.is_dir()]
    if not missing or sys.platform == "win32":
        return
    import pwd

    try:
        rights: dict[str, Any] = {}
        if os.geteuid() == 0:
            found = pwd.getpwnam(account)
            rights = {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": ()}
        subprocess.run(  # noqa: S603 - words of our own, without a shell
            ("/bin/mkdir", "-p", "--", *missing),
            check=True,
            capture_output=True,
            umask=0o077,
            **rights,
        )
    except (OSError, KeyError, subprocess.CalledProcessError) as error:
        raise SettingsError(
            f"The account {account} cannot make these folders: {', '.join(missing)}.",
            hint="Make them, so that the account owns them; then install the service again.",
        ) from error


def _run(command: tuple[str, ...]) -> str:
    try:
        ended = subprocess.run(  # noqa: S603 - words of our own, without a shell
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
            env=os.environ | {"LC_ALL": "C"},
        )
    except FileNotFoundError:
        return f"there is no {command[0]} on this computer"
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)[:_SAID]
    if ended.returncode == 0:
        return ""
    said = (ended.stderr or ended.stdout).decode("utf-8", "replace").strip()
    return said[:_SAID] or f"it ended with {ended.returncode}"


def _require_ours(file: Path) -> None:
    try:
        ours = is_ours(file)
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror or error}.") from error
    if not ours:
        raise SettingsError(
            f"{file} was not made by this program, so it is left alone.",
            hint=f'Move it away first, or add the line "{MARK}" to a comment in it.',
        )
