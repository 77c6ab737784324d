"""The context of a run without a disk, a staging host or a server."""

from contextlib import nullcontext
from typing import Any

from mydata_like.engine.bottleneck import BottleneckMonitor
from mydata_like.engine.channels import ChannelPool
from mydata_like.engine.gate import Gate
from mydata_like.engine.progress import RunProgress
from mydata_like.engine.run_context import RunContext
from mydata_like.engine.source_store import ExtraSources
from mydata_like.engine.user_overrides import UserOverrides
from mydata_like.settings import transfer_sections as settings
from mydata_like.settings.schema import Settings
from tests.fakes.ledger import MemoryLedger
from tests.fakes.roll import MemoryRoll


class FixedTransport:
    mark = b"0123abcd"
    can_replace = True
    capacity = 4
    round_trip = 0.0


def make_context(gate: Gate, emit, *, transport: Any = None, **parts: Any) -> RunContext:
    """Return a context with this gate; `parts` replace the default parts."""
    clock, transport = gate.clock, transport or FixedTransport()
    channels = ChannelPool(transport, gate, emit, settings.Limits())
    usual = {
        "run": "a-run",
        "root": b"/data",
        "reason": "person",
        "catalogue": None,  # the stages of these tests have no use for one
        "ledger": MemoryLedger(),
        "transport": transport,
        "box": "staging",
        "emit": emit,
        "emit_all": lambda events: [emit(event) for event in events],
        "progress": RunProgress(clock),
        "clock": clock,
        "cancel": gate.cancel,
        "gate": gate,
        "channels": channels,
        "choices": UserOverrides(emit),
        "sources": ExtraSources(Settings(), MemoryRoll()),
        "shares": BottleneckMonitor(channels, transport, emit, 1),
        "take_commands": nullcontext,
    }
    return RunContext(**(usual | parts))
