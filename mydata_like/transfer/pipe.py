"""The way between the engine and a channel worker: one message after the other, both ways."""

import os
import pickle
from contextlib import suppress
from typing import IO, Any, Final

# What the library raises for bytes that are no message (its documentation names some of these).
_TORN: Final = (
    pickle.UnpicklingError,
    ArithmeticError,
    AttributeError,
    ImportError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)


class Pipe:
    """One end of it. One thread at a time may send, and another one receive."""

    def __init__(self, incoming: IO[bytes], outgoing: IO[bytes]) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    def send(self, message: object) -> None:
        """Send a message; raises `OSError` where the other end is gone."""
        self._outgoing.write(pickle.dumps(message, pickle.HIGHEST_PROTOCOL))
        self._outgoing.flush()

    def receive(self) -> Any:
        """Wait for a message; raises `EOFError` once there is no other end, or one of no sense."""
        try:
            return pickle.load(self._incoming)  # noqa: S301 - only our own processes write it
        except _TORN as error:
            raise EOFError("The other end died in the middle of a message.") from error

    def close(self) -> None:
        """Give this end up, with what the other one never took."""
        for stream in (self._outgoing, self._incoming):
            with suppress(OSError):
                stream.close()


def take_standard_streams() -> Pipe:
    """Return the pipe to whoever started this process with pipes as input and output.

    From now on what is printed goes where complaints go, and no child of ours inherits an end.
    """
    pipe = Pipe(open(os.dup(0), "rb"), open(os.dup(1), "wb"))  # noqa: SIM115, PTH123 - for good
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.close(nothing)
    with suppress(OSError):  # a windowed program may have nowhere to complain
        os.dup2(2, 1)
    return pipe
