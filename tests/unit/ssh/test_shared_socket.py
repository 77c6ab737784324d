"""What threads that share a socket find out for one another."""

import pytest

from mydata_like.core.errors import TransientError
from mydata_like.ssh.shared_socket import _Waiter


def refuse():
    try:
        int("what a library fails at")
    except ValueError as error:
        raise TransientError("No channel is granted.") from error


def test_an_error_for_another_thread_keeps_no_buffer_of_the_one_that_found_it():
    waiter, buffer = _Waiter(refuse), bytearray(9)

    def find_out(_: memoryview):
        waiter.check()

    with memoryview(buffer) as view:
        find_out(view.cast("B"))

    del buffer[:]  # raises BufferError where a frame still has a view of it
    with pytest.raises(TransientError, match="No channel") as raised:
        waiter.raise_error()
    assert isinstance(raised.value.__cause__, ValueError)
