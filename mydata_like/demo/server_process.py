"""The embedded server in a separate process, with controls over HTTP."""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import requests
from flask import Response, request

from mydata_like.demo.demo_server import EmbeddedServer
from mydata_like.demo.middleware import CONTROL, parse_fault
from mydata_like.demo.requests import answer_json
from mydata_like.demo.uploaders import ScpAddress


def add_control(server: EmbeddedServer) -> None:
    """Add commands to a server that is not started: POST /control/NAME/ with JSON.

    Any client that can reach the port can use them, so this is only for tests on the same computer.
    """

    def set_faults(rules: list[dict[str, Any]]) -> None:
        faults = [parse_fault(rule) for rule in rules]
        server.faults.clear()
        server.faults.add(*faults)

    commands: dict[str, Callable[..., Any]] = {
        "faults": set_faults,
        "requests": lambda since=0: [entry._asdict() for entry in server.requests[since:]],
        "violations": server.violations,
        "invariants": server.check_invariants,
        "address": lambda **address: server.set_address(ScpAddress(**address)),
        "blocked_workers": lambda: server.blocked_workers,
    }
    for method in (
        *(server.approve, server.withdraw_approval, server.annotate_approval),
        *(server.public_keys, server.key_of, server.revoke_key),
        *(server.set_settings, server.set_immutable, server.limit_workers),
        *(server.hold_verification, server.release_verification, server.wait_verified),
    ):
        commands[method.__name__] = method

    def execute(name: str) -> Response:
        if name not in commands:
            return answer_json({"error": f"There is no command {name}."}, 404)
        try:
            return answer_json(commands[name](**request.get_json()))
        except (KeyError, TypeError, ValueError) as error:
            return answer_json({"error": str(error)}, 400)

    server.app.add_url_rule(f"{CONTROL}<name>/", "control", execute, methods=["POST"])


def main() -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--verify-delay", type=float, default=0.2)
    parser.add_argument("--zone", default="Australia/Melbourne")
    parser.add_argument("--auto-approve", action="store_true")
    parser.add_argument("--faults", type=Path, help="a JSON file with a list of rules")
    options = parser.parse_args()
    server = EmbeddedServer(
        options.directory,
        verify_delay=options.verify_delay,
        zone=options.zone,
        auto_approve=options.auto_approve,
        port=options.port,
    )
    if options.faults is not None:
        rules = json.loads(options.faults.read_text())
        server.faults.add(*(parse_fault(rule) for rule in rules))
    add_control(server)
    with server:
        settings = {
            "url": server.url,
            "username": server.username,
            "api_key": server.api_key,
            "box_name": server.box_name,
            "box_location": str(server.box_location),
        }
        sys.stdout.write(json.dumps(settings) + "\n")
        sys.stdout.flush()
        sys.stdin.read()


class ServerProcess:
    """An embedded server in another process; it ends with its context or with this process."""

    def __init__(self, directory: Path, *options: str) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            [
                *(sys.executable, "-m", "mydata_like.demo.server_process"),
                *("--directory", str(directory), *options),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        settings = json.loads(self._process.stdout.readline())
        self.url: str = settings["url"]
        self.username: str = settings["username"]
        self.api_key: str = settings["api_key"]
        self.box_name: str = settings["box_name"]
        self.box_location = Path(settings["box_location"])

    def command(self, name: str, **values: Any) -> Any:
        """Execute a command of `add_control`. Raises `ValueError` with the server's message."""
        with requests.Session() as session:
            session.trust_env = False  # use no proxy between two processes of one computer
            reply = session.post(f"{self.url}/control/{name}/", json=values, timeout=60)
            answer = reply.json()
        if reply.status_code != 200:
            raise ValueError(answer["error"])
        return answer

    def kill(self) -> None:
        """Kill the server, as a power cut does."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Stop the server; do nothing if it has ended."""
        self._process.communicate(timeout=30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


if __name__ == "__main__":
    main()
