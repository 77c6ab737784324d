"""The context of a run that never reaches a disk, a host or a server."""

from contextlib import nullcontext
from typing import Any

from mydata_like.engine.bandwidth import Bandwidth
from mydata_like.engine.channels import Channels
from mydata_like.engine.choices import Choices
from mydata_like.engine.context import RunContext
from mydata_like.engine.limits import Limits
from mydata_like.engine.progress import RunProgress
from mydata_like.engine.retry import Gate
from mydata_like.engine.shares import Shares
from mydata_like.engine.sources import Sources
from mydata_like.settings import transfer_sections as settings
from mydata_like.settings.schema import Settings
from tests.fakes.ledger import MemoryLedger
from tests.fakes.roll import MemoryRoll
from tests.fakes.server import ScriptedServer


class FixedTransport:
    capacity = 4
    round_trip = 0.0


def make_context(gate: Gate, emit, *, transport: Any = None, **parts: Any) -> RunContext:
    """Return a context around a gate; `parts` take the places of what a run usually has."""
    clock, transport = gate.clock, transport or FixedTransport()
    channels = Channels(transport, gate, emit, Bandwidth(clock))
    usual = {
        "run": "a-run",
        "root": b"/data",
        "reason": "person",
        "server": ScriptedServer(),
        "ledger": MemoryLedger(),
        "transport": transport,
        "box": "staging",
        "emit": emit,
        "progress": RunProgress(clock),
        "clock": clock,
        "cancel": gate.cancel,
        "gate": gate,
        "limits": Limits(settings.Limits(), channels, clock, emit),
        "choices": Choices(emit),
        "sources": Sources(Settings(), MemoryRoll()),
        "shares": Shares(channels, transport, emit, 1),
        "take_commands": nullcontext,
    }
    return RunContext(**(usual | parts))
