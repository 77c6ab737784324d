"""An `ssh` that has logged in over a connection of ours and does what we ask it to.

We connect, ssh speaks: what it writes goes straight to the host, what the host says passes
through us. So we know when something moves, and ssh ends with us, however we end.
"""

import os
import re
import select
import socket
import subprocess
import threading
import time
from collections import deque
from contextlib import suppress
from typing import Final, NamedTuple

from mydata_like.core.errors import TransientError, UploaderError
from mydata_like.ssh import links
from mydata_like.ssh.keys import PublicKey
from mydata_like.ssh.mux import Shared
from mydata_like.ssh.openssh import (
    Files,
    build_command,
    build_environment,
    explain,
    not_started,
    reason,
)
from mydata_like.ssh.session import Endpoint

_GLANCE: Final = 0.1  # seconds of one wait
_FAREWELL: Final = 5.0  # seconds for our thread to notice that ssh was killed
_CHUNK: Final = 64 * 1024
_LINES: Final = 20  # of what ssh said last that are kept
_LINE: Final = 2000  # characters of it that are looked at
_READY: Final = "debug1: Entering interactive session"
_CIPHER: Final = re.compile(r"debug1: kex: client->server cipher: (\S+)")


class Ends(NamedTuple):
    """Our descriptors of a command: what it reads, what it writes, and its request's own."""

    stdin: int
    stdout: int
    stderr: int
    request: int


class Master:
    """One login by the system's ssh, with any number of channels; ends with `cut`.

    Raises what is wrong where the login fails. The wire is a connected socket, used up.
    """

    def __init__(self, endpoint: Endpoint, wire: socket.socket, host_key: PublicKey) -> None:
        self.endpoint = endpoint
        self.cipher = ""
        self._wire = wire
        self._moved = time.monotonic()
        self._said: deque[str] = deque(maxlen=_LINES)
        self._rest = b""  # of a line that ssh has not ended yet
        self._settled = threading.Event()  # we are in, or never will be
        self._in = False
        self._over = False
        try:
            self._files = Files(endpoint, host_key)
            self._process, self._inflow = self._start(host_key)
        except (OSError, subprocess.SubprocessError) as error:
            wire.close()
            raise not_started(error) from error
        self._shared = Shared(self._files.control, self.watch)
        self._thread = threading.Thread(target=self._attend, name="ssh-attendant", daemon=True)
        self._thread.start()
        try:
            self._await_login()
        except BaseException:
            self.cut()
            raise

    def start(self, command: bytes, *, subsystem: bool = False) -> Ends:
        """Start a remote command; raises `TransientError` where no channel is granted."""
        self.begin()
        for pause in links.GRACE:
            if ends := self._try_start(command, subsystem=subsystem):
                return ends
            time.sleep(pause)
        raise links.no_channel(self.endpoint)

    def forward(self, host: str, port: int) -> tuple[socket.socket, int]:
        """Return a connection that the host makes for us, and its request's descriptor."""
        self.begin()
        ours, theirs = socket.socketpair()
        request = None
        try:
            request = self._shared.forward(host, port, theirs.fileno())
        except OSError as error:
            raise self._broken() from error
        finally:
            theirs.close()
            if request is None:
                ours.close()
        if request is None:
            raise links.not_let_through(self.endpoint, host, port)
        return ours, request

    def begin(self) -> None:
        """Somebody waits from now on."""
        self.check()
        self._moved = time.monotonic()

    def note_movement(self) -> None:
        """Bytes have moved."""
        self._moved = time.monotonic()

    def watch(self) -> None:
        """Return if bytes have moved not too long ago; raises `TransientError`."""
        if time.monotonic() - self._moved > self.endpoint.stall_timeout:
            self.cut()
            raise links.stalled(self.endpoint, self.endpoint.stall_timeout)

    def check(self) -> None:
        """Return if the connection stands; raises `TransientError`."""
        if self._over or self._process.poll() is not None:
            raise self._broken()

    def cut(self) -> None:
        """End ssh and the connection; whoever waits for them is woken and fails."""
        self._over = True
        with suppress(OSError):
            self._wire.shutdown(socket.SHUT_RDWR)
        self._process.kill()
        self._process.wait()
        if threading.current_thread() is not self._thread:
            self._thread.join(_FAREWELL)
        self._wire.close()
        self._files.remove()

    def _start(self, host_key: PublicKey) -> tuple["subprocess.Popen[bytes]", int]:
        theirs, inflow = os.pipe()
        try:
            process = subprocess.Popen(  # noqa: S603 - a program of the system, words of ours
                build_command(self.endpoint, self._files, host_key),
                stdin=theirs,
                stdout=self._wire.fileno(),
                stderr=subprocess.PIPE,
                cwd=self._files.directory,
                env=build_environment(self.endpoint),
            )
        except BaseException:
            os.close(inflow)
            self._files.remove()
            raise
        finally:
            os.close(theirs)
        return process, inflow

    def _await_login(self) -> None:
        while not self._settled.wait(_GLANCE):
            self.watch()
        if not self._in:
            raise self._failure()
        self._files.remove(but_control=True)

    def _failure(self) -> UploaderError:
        return explain(self.endpoint, tuple(self._said))

    def _attend(self) -> None:
        """Pass on what the host says, and hear what ssh says, until ssh has ended."""
        assert self._process.stderr is not None
        wire, complaints = self._wire.fileno(), self._process.stderr.fileno()
        poll = select.poll()
        poll.register(wire, select.POLLIN)
        poll.register(complaints, select.POLLIN)
        listening = True
        while listening:
            for descriptor, _ in poll.poll():
                if descriptor == complaints:
                    listening = self._listen(complaints)
                elif not self._relay():
                    poll.unregister(wire)
                    self._end_inflow()
        self._over = True
        self._end_inflow()
        self._process.stderr.close()
        self._settled.set()

    def _relay(self) -> bool:
        """Pass on what has come from the host; return whether more may come."""
        try:
            data = self._wire.recv(_CHUNK)
            self.note_movement()
            while data:
                data = data[os.write(self._inflow, data) :]
                if not data:
                    return True
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def _end_inflow(self) -> None:
        """Let ssh know that nothing more will come."""
        self._over = True
        inflow, self._inflow = self._inflow, -1
        if inflow >= 0:
            os.close(inflow)

    def _listen(self, complaints: int) -> bool:
        """Take in what ssh says; return whether it may say more."""
        said = os.read(complaints, _CHUNK)
        *lines, self._rest = (self._rest + said).split(b"\n")
        self._rest = self._rest[:_LINE]
        for line in lines:
            self._understand(line[:_LINE].decode("utf-8", "backslashreplace"))
        return bool(said)

    def _understand(self, line: str) -> None:
        self._said.append(line)
        if not self.cipher and (found := _CIPHER.match(line)):
            self.cipher = found[1]
        if line.startswith(_READY):
            self._in = True
            self._settled.set()

    def _try_start(self, command: bytes, *, subsystem: bool) -> Ends | None:
        """Start a command; None where no channel is granted."""
        pipes = [os.pipe() for _ in range(3)]
        (their_in, our_in), (our_out, their_out), (our_err, their_err) = pipes
        theirs = (their_in, their_out, their_err)
        request = None
        try:
            request = self._shared.start(command, theirs, subsystem=subsystem)
        except OSError as error:
            raise self._broken() from error
        finally:
            unused = theirs if request is not None else (*theirs, our_in, our_out, our_err)
            for descriptor in unused:
                os.close(descriptor)
        return Ends(our_in, our_out, our_err, request) if request is not None else None

    def _broken(self) -> TransientError:
        self.cut()
        return links.lost(self.endpoint, reason(tuple(self._said)))
