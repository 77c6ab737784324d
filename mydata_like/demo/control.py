"""The embedded server's own switches over HTTP, for when it runs in another process."""

from collections.abc import Callable
from typing import Any

from flask import Response, request

from mydata_like.demo.answers import answer_json
from mydata_like.demo.approval import ScpAddress
from mydata_like.demo.faults import parse_fault
from mydata_like.demo.gate import CONTROL
from mydata_like.demo.server import EmbeddedServer


def add_control(server: EmbeddedServer) -> None:
    """Let a server that has not been started take commands: POST /control/NAME/ with JSON.

    Whoever reaches the port can give them, so this is for tests on one's own machine only.
    """
    commands = _commands(server)

    def obey(name: str) -> Response:
        if name not in commands:
            return answer_json({"error": f"There is no command {name}."}, 404)
        try:
            return answer_json(commands[name](**request.get_json()))
        except (KeyError, TypeError, ValueError) as error:
            return answer_json({"error": str(error)}, 400)

    server.app.add_url_rule(f"{CONTROL}<name>/", "control", obey, methods=["POST"])


def _commands(server: EmbeddedServer) -> dict[str, Callable[..., Any]]:
    def set_faults(rules: list[dict[str, Any]]) -> None:
        faults = [parse_fault(rule) for rule in rules]
        server.faults.clear()
        server.faults.add(*faults)

    def set_address(**address: Any) -> None:
        server.set_address(ScpAddress(**address))

    return {
        "faults": set_faults,
        "requests": lambda since=0: [entry._asdict() for entry in server.requests[since:]],
        "violations": server.violations,
        "invariants": server.check_invariants,
        "address": set_address,
        "approve": server.approve,
        "withdraw_approval": server.withdraw_approval,
        "annotate_approval": server.annotate_approval,
        "public_keys": server.public_keys,
        "key_of": server.key_of,
        "revoke_key": server.revoke_key,
        "set_settings": server.set_settings,
        "set_immutable": server.set_immutable,
        "hold_verification": server.hold_verification,
        "release_verification": server.release_verification,
        "wait_verified": server.wait_verified,
        "limit_workers": server.limit_workers,
        "blocked_workers": lambda: server.blocked_workers,
    }
