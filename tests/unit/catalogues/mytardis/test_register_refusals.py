"""Records that are refused: doubted once, believed from then on, and never for long."""

from random import Random

from mydata_like.catalogues.mytardis.dataset_writers import WriteTracker
from mydata_like.catalogues.mytardis.register import Register, RegisterOptions, RequestPace
from mydata_like.core.events import FileFailed, FileRegistered
from mydata_like.engine.gate import Gate
from tests.fakes.clock import FakeClock
from tests.fakes.ledger import MemoryLedger
from tests.fakes.server import ScriptedServer
from tests.fakes.source import ListSource
from tests.unit.engine.files import a_staged

MINUTE = 60.0


def register(server, names):
    """Register files of these names; return what was told, and how long it took."""
    clock, events = FakeClock(), []
    gate = Gate(clock, clock.cancel(), events.append, Random(1))
    ledger = MemoryLedger()
    filing = RegisterOptions(
        "staging", RequestPace(25, 3, clock), WriteTracker(ledger, clock, 300.0)
    )
    stage = Register(server, ledger, events.append, gate, filing)
    list(stage(ListSource([[a_staged(name) for name in names]], clock)))
    return events, clock.monotonic()


def test_a_dataset_that_refuses_all_does_not_hold_up_the_others():
    server = ScriptedServer()
    names = [f"f{number:03}" for number in range(200)]
    server.refused = set(names)

    events, seconds = register(server, names)

    assert sum(isinstance(event, FileFailed) for event in events) == 200
    assert seconds < MINUTE


def test_files_behind_a_refused_one_are_registered():
    server = ScriptedServer()
    server.refused = {"f000", "f007"}

    events, _ = register(server, [f"f{number:03}" for number in range(20)])

    assert sum(isinstance(event, FileFailed) for event in events) == 2
    assert sum(isinstance(event, FileRegistered) for event in events) == 18
