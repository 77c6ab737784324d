"""The steps of the connection test, and the small file that is sent in it."""

import os
import secrets
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from mydata_like.core.errors import UploaderError
from mydata_like.core.local_files import LocalFile
from mydata_like.core.model import Dataset, DatasetId, FileRecord, Payload
from mydata_like.core.ports import CancelSignal, SentFile, Transport
from mydata_like.settings.atomic_write import write_private

SIZE: Final = 100_000  # bytes of the file that is sent
_LONG_AGO: Final = 1_000_000_000  # seconds since 1970
_SETTLED: Final = 0.1  # seconds after which a later change of a file is always noticed


class StepResult(StrEnum):
    """The result of a step of the connection test, from good to bad."""

    OK = "ok"
    UNPROVEN = "unproven"
    FAILED = "failed"


class TestStep(NamedTuple):
    """One step of the connection test: what was found, and what to do if it failed."""

    name: str
    result: StepResult
    message: str
    hint: str = ""
    code: str = ""
    exit_code: int = 0

    def as_record(self) -> dict[str, object]:
        """Return the step as plain values for JSON."""
        values = self._asdict()
        del values["exit_code"]
        return values


def succeeded(name: str, message: str, code: str = "") -> TestStep:
    """Return a step with a good result."""
    return TestStep(name, StepResult.OK, message, code=code)


def failed(name: str, error: UploaderError) -> TestStep:
    """Return a step that ended with an error."""
    code, message, hint = error.problem
    return TestStep(name, StepResult.FAILED, message, hint, code, error.exit_code)


def differs(message: str, hint: str) -> TestStep:
    """Return the step for a file that arrived with other bytes."""
    return TestStep("file", StepResult.FAILED, message, hint, "staging.unproven", 1)


def until_failed(name: str, steps: Iterator[TestStep]) -> Iterator[TestStep]:
    """Yield steps; an error ends them, and is yielded as a step with this name."""
    try:
        yield from steps
    except UploaderError as error:
        yield failed(name, error)


def send_test_file(transport: Transport, name: str, folder: Path, cancel: CancelSignal) -> str:
    """Send a small file of a local folder as a run does; return its checksum."""
    path = folder / f"check-{secrets.token_hex(4)}"
    try:
        write_private(path, secrets.token_bytes(SIZE))
        os.utime(path, (_LONG_AGO, _LONG_AGO))
        cancel.wait(_SETTLED)
        there, text = path.stat(), os.fsencode(path)
        identity = there.st_mtime_ns, there.st_dev, there.st_ino
        file = LocalFile(text, b"", b"", b"", SIZE, *identity)
        payload = Payload(0, (FileRecord(file, Dataset(DatasetId(0), ""), name),), batched=False)
        (fate,) = transport.open_channel().send(payload, lambda *_: None)
    finally:
        path.unlink(missing_ok=True)
    if not isinstance(fate, SentFile):
        code, message, hint = fate.problem
        raise UploaderError(message, hint=hint, code=code)
    return fate.checksum


UNMEASURED: Final = "The connection to the server was not measured"
