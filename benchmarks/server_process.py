"""The embedded server in a process of its own, so that its work counts as that of a server."""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

from mydata_like.demo.demo_server import EmbeddedServer
from mydata_like.demo.middleware import Delay, Fault
from mydata_like.demo.uploaders import ScpAddress


def main() -> None:
    """Serve until standard input ends; each of its lines is a command, answered by a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--verify-delay", type=float, default=0.2)
    parser.add_argument("--latency", type=float, default=0.0, help="of each answer, in seconds")
    options = parser.parse_args()
    server = EmbeddedServer(options.directory, verify_delay=options.verify_delay, auto_approve=True)
    if options.latency:
        server.faults.add(Fault(action=Delay(options.latency), count=None))
    with server:
        answer: object = {
            "url": server.url,
            "username": server.username,
            "api_key": server.api_key,
            "box_location": str(server.box_location),
        }
        print(json.dumps(answer), flush=True)
        for line in sys.stdin:
            name, values = json.loads(line)
            if name == "address":
                answer = None
                server.set_address(ScpAddress(**values))
            else:
                answer = [entry._asdict() for entry in server.requests[values["since"] :]]
            print(json.dumps(answer), flush=True)


class ServerProcess:
    """An embedded server in another process; it ends with its context or with this process."""

    def __init__(self, directory: Path, *options: str) -> None:
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "benchmarks.server_process"),
                *("--directory", str(directory), *options),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        settings = self._read()
        self.url: str = settings["url"]
        self.username: str = settings["username"]
        self.api_key: str = settings["api_key"]
        self.box_location = Path(settings["box_location"])

    def set_address(self, **values: Any) -> None:
        """Set the host and the account over which approved uploaders reach the staging area."""
        self._command("address", values)

    def list_requests(self, since: int) -> list[dict[str, Any]]:
        """Return the requests in the order of their answers."""
        found: list[dict[str, Any]] = self._command("requests", {"since": since})
        return found

    def kill(self) -> None:
        """Kill the server, as a power cut does."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=30)

    def _command(self, name: str, values: dict[str, Any]) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([name, values]) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


if __name__ == "__main__":
    main()
