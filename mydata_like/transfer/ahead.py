"""Reading ahead: a file is read and hashed in a thread while what came before is sent."""

from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Thread
from typing import Final

from mydata_like.transfer.protocol import Moving

_CHUNK: Final = 256 * 1024  # bytes that a chunk has at most
_AHEAD: Final = 4  # chunks that wait to be sent

_Free = SimpleQueue[bytearray | None]
_Full = SimpleQueue[memoryview | BaseException | None]


@contextmanager
def read_ahead(chunks: Iterator[memoryview], moving: Moving) -> Iterator[Iterator[memoryview]]:
    """Have a thread take chunks while this lasts; yield them, each valid until the next.

    The thread reports each chunk to `moving`, so that its work counts as the payload's.
    """
    free: _Free = SimpleQueue()
    full: _Full = SimpleQueue()
    for _ in range(_AHEAD):
        free.put(bytearray(_CHUNK))
    thread = Thread(target=_read, args=(chunks, moving, free, full), name="ahead", daemon=True)
    thread.start()
    try:
        yield _pass_on(full, free)
    finally:
        free.put(None)
        thread.join()


def _read(chunks: Iterator[memoryview], moving: Moving, free: _Free, full: _Full) -> None:
    try:
        for chunk in chunks:
            moving(0)
            if (buffer := free.get()) is None:
                return
            buffer[: len(chunk)] = chunk
            full.put(memoryview(buffer)[: len(chunk)])
        full.put(None)
    except BaseException as error:  # noqa: BLE001 - whoever waits for chunks is to have it
        full.put(error)


def _pass_on(full: _Full, free: _Free) -> Iterator[memoryview]:
    while (chunk := full.get()) is not None:
        if isinstance(chunk, BaseException):
            raise chunk
        yield chunk
        assert isinstance(chunk.obj, bytearray)
        free.put(chunk.obj)
