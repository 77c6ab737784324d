"""The way of one tiny file from scan to verified: the calls that have it in their hands.

`python -m tests.structure --route` uploads a single new tiny file to the embedded server
through a private sshd, and follows the engine's threads and the channel workers with
`sys.setprofile`. Only calls whose arguments or result carry the file (its name, or a value that
contains its name) belong to its way; starting, connecting and waiting do not.
"""

import inspect
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass
from enum import Enum
from pathlib import Path, PurePath
from types import CodeType, FrameType
from typing import Any, NamedTuple

import mydata_like

SOURCE = mydata_like.__path__[0] + os.sep
NAME = "the-one-tiny-file"
FOLDER = Path("Owner", "Dataset")
DEPTH = 4  # of values in values
MANY = 20  # values of a list that are looked at
# A package of the program's name that is found first; it starts following, then loads the program.
_SHIM = """\
import importlib.util, sys
sys.path.remove({folder!r})
__path__ = [{source!r}]
_spec = importlib.util.spec_from_file_location("_route", {route!r})
_route = importlib.util.module_from_spec(_spec)
sys.modules["_route"] = _route
_spec.loader.exec_module(_route)
_route.follow_worker({folder!r})
"""


class Step(NamedTuple):
    """One call that carries the file."""

    begun: int  # monotonic nanoseconds, the same clock in all processes
    module: str
    function: str
    types: list[str]


class Follower:
    """Notes the calls of this process that carry the file."""

    def __init__(self, note: Callable[[Step], object]) -> None:
        self._keep = note
        self._open: dict[int, tuple[int, set[str]]] = {}
        self._names: dict[CodeType, str | None] = {}

    def start(self) -> None:
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def stop(self) -> None:
        threading.setprofile(None)
        sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, result: Any) -> None:
        if event not in ("call", "return") or not (module := self._find_module(frame.f_code)):
            return
        if event == "call":
            # A generator that goes on is the same call.
            if id(frame) not in self._open:
                self._open[id(frame)] = (time.monotonic_ns(), _find_in_arguments(frame))
            return
        begun, types = self._open.pop(id(frame), (0, set[str]()))
        found = types | _find_types(result)
        if begun and found:
            function = frame.f_code.co_qualname
            self._keep(Step(begun, module, function, sorted(found)))

    def _find_module(self, code: CodeType) -> str | None:
        if code not in self._names:
            name = code.co_filename
            inside = name.startswith(SOURCE) and not name.startswith(f"{SOURCE}demo{os.sep}")
            # Comprehensions and functions without a name are part of the function around them.
            named = inside and not code.co_name.startswith("<")
            self._names[code] = name.removeprefix(SOURCE).removesuffix(".py") if named else None
        return self._names[code]


def follow_worker(folder: str) -> None:
    """Follow this channel worker, and append its steps to a file in the folder.

    Each is written at once, since the engine may kill a worker that is not needed any more.
    """
    page = os.open(Path(folder, f"{os.getpid()}.json"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    Follower(lambda step: os.write(page, json.dumps(step).encode() + b"\n")).start()


def _find_in_arguments(frame: FrameType) -> set[str]:
    found = set[str]()
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    for name in code.co_varnames[:count]:
        if name in frame.f_locals:
            found |= _find_types(frame.f_locals[name])
    return found


def _find_types(value: Any, depth: int = DEPTH) -> set[str]:
    """Return the types that carry the file: of the value, and of what is in it."""
    if isinstance(value, str):
        return {"str"} if NAME in value else set()
    if isinstance(value, bytes | bytearray):
        return {"bytes"} if NAME.encode() in value else set()
    if isinstance(value, PurePath):
        return {"Path"} if NAME in str(value) else set()
    if not depth or isinstance(value, Enum):
        return set()
    inner = set[str]()
    for part in _list_parts(value):
        inner |= _find_types(part, depth - 1)
    return inner | {type(value).__name__} if inner else set()


def _list_parts(value: Any) -> list[Any]:
    """Return what is in a value; objects that do work are no values."""
    if isinstance(value, tuple | list | set | frozenset):
        return list(value)[:MANY]
    if isinstance(value, dict):
        pairs = list(value.items())[:MANY]
        return [part for pair in pairs for part in pair]
    if is_dataclass(value) and not isinstance(value, type):
        parameters = value.__dataclass_params__  # type: ignore[attr-defined]
        if parameters.frozen:
            return [getattr(value, name, None) for name in value.__dataclass_fields__]
    return []


@contextmanager
def _shim(folder: Path) -> Iterator[None]:
    """Let the workers that this process starts follow themselves."""
    package = folder / "mydata_like"
    package.mkdir(parents=True)
    text = _SHIM.format(folder=str(folder), source=SOURCE.rstrip(os.sep), route=__file__)
    (package / "__init__.py").write_text(text, "utf-8")
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def trace() -> list[Step]:
    """Upload one new tiny file; return its steps by time. Raises if it was not verified."""
    # These load the servers.
    from tests.site import open_site

    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        file = place / "site" / "data" / FOLDER / NAME
        file.parent.mkdir(parents=True)
        file.write_bytes(b"tiny")
        os.utime(file, (1_700_000_000, 1_700_000_000))
        steps: list[Step] = []
        follower = Follower(steps.append)
        with open_site(place / "site") as site, _shim(place / "steps"):
            follower.start()
            try:
                carried = site.carry()
            finally:
                follower.stop()
        if carried.code:
            raise RuntimeError(f"the file was not verified: {carried.sums}")
        for page in (place / "steps").glob("*.json"):
            steps += [Step(*json.loads(line)) for line in page.read_text("utf-8").splitlines()]
    return sorted(steps)


BUILT_IN = {"str", "bytes", "Path", "tuple", "list", "dict", "set", "frozenset"}


def count_stages() -> int:
    """Return the number of stages of a run."""
    from mydata_like.engine.run import Stages

    return len(Stages.__annotations__)


def measure(steps: list[Step]) -> dict[str, int]:
    """Return the figures of a way."""
    modules = [step.module for step in steps]
    changes = [one for one, other in zip(modules, ["", *modules], strict=False) if one != other]
    types = {name for step in steps for name in step.types} - BUILT_IN
    return {
        "modules": len(set(modules)),
        "functions": len({(step.module, step.function) for step in steps}),
        "calls": len(steps),
        "changes of module": len(changes) - 1,
        # to the module that it has just left
        "returns": sum(one == other for one, other in zip(changes, changes[2:], strict=False)),
        "value types": len(types),
        "stages": count_stages(),
    }


# At 4b686c66, as this program counts.
THEN = {
    "modules": 47,
    "functions": 215,
    "calls": 356,
    "changes of module": 186,
    "returns": 48,
    "value types": 20,
    "stages": 13,
}


def print_route() -> None:
    """Print the way of one tiny file, and its figures then and now."""
    steps = trace()
    for step in steps:
        values = ", ".join(name for name in step.types if name not in BUILT_IN)
        sys.stdout.write(f"{step.module:30} {step.function:50} {values}\n")
    sys.stdout.write(f"\n{'one tiny file from scan to verified':40} {'4b686c66':>10} {'now':>10}\n")
    for name, value in measure(steps).items():
        sys.stdout.write(f"{name:40} {THEN[name]:>10} {value:>10}\n")
