"""The child process that makes a speed test: `mydata-like doctor --events --attended`."""

from PySide6.QtCore import QCoreApplication, QObject, QTimer, Signal, Slot

from mydata_like.core.errors import Problem
from mydata_like.core.events import Event, RunFinished, parse_event
from mydata_like.gui import standing
from mydata_like.gui.controller import Controller
from mydata_like.gui.engine import Engine, Record, describe_end

PATIENCE = 20_000  # milliseconds that it has to leave nothing on the server once it was cancelled


class Examiner(QObject):
    """Makes one speed test after the other, or applies what the latest one advised.

    It ends with the window: its standard input does, and it removes what it wrote.
    """

    measured = Signal(object)  # a figure, as a record
    ended = Signal(object)  # a Problem, or None where all went well or it was cancelled

    def __init__(self, controller: Controller, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._controller = controller
        self._engine: Engine | None = None
        self._problem: Problem | None = None
        self._is_over = False  # by its own word or a person's: its end is no surprise
        self._patience = QTimer(self, singleShot=True, interval=PATIENCE)
        self._patience.timeout.connect(self._lose_patience)
        if app := QCoreApplication.instance():
            app.aboutToQuit.connect(self._let_go)

    @property
    def at_work(self) -> bool:
        """Whether there is a test that has not ended yet."""
        return self._engine is not None

    def test(self, *, quick: bool, anyway: bool) -> None:
        """Begin a test; `anyway` although the instrument is to be spared just now."""
        self._begin(("--quick",) * quick + ("--anyway",) * anyway)

    def apply(self, *, quick: bool, anyway: bool) -> None:
        """Write what the latest test advised, and measure what that gains."""
        self._begin(("--apply", "--latest") + ("--quick",) * quick + ("--anyway",) * anyway)

    @Slot()
    def cancel(self) -> None:
        """End it; it takes a moment to remove what it wrote on the server."""
        if self._engine is not None:
            self._is_over = True
            self._engine.close_input()
            self._patience.start()

    def _begin(self, options: tuple[str, ...]) -> None:
        self._problem, self._is_over = None, False
        program = standing.program_words(
            "doctor", self._controller.config, "--events", "--attended", *options
        )
        self._engine = Engine(program, self, parse=_parse_test_event)
        self._engine.events_received.connect(self._take_events)
        self._engine.ended.connect(self._take_end)
        self._engine.start()
        self._controller.show_test(under_way=True)

    @Slot(object)
    def _take_events(self, events: list[Event | Record]) -> None:
        for event in events:
            match event:
                case {"event": "stage_measured"}:
                    self.measured.emit(event)
                case {"event": "test_finished"}:
                    self._is_over = True
                case RunFinished():
                    self._problem = event.problem
                case _:
                    pass

    @Slot(object)
    def _take_end(self, code: int | None) -> None:
        said = ""
        if self._engine is not None:
            said = self._engine.said
            self._engine.deleteLater()
        self._engine = None
        self._patience.stop()
        self._controller.show_test(under_way=False)
        if self._problem is None and not self._is_over:
            self._problem = _explain_end(code, said)
        self.ended.emit(self._problem)

    @Slot()
    def _lose_patience(self) -> None:
        if self._engine is not None:
            self._engine.kill()  # the next test removes what this one leaves

    @Slot()
    def _let_go(self) -> None:
        if self._engine is not None:
            self._engine.let_go()


def _parse_test_event(record: Record) -> Event | Record:
    """Return an event of runs as such, and one of speed tests only as the record that it is."""
    return parse_event(record) or record


def _explain_end(code: int | None, said: str) -> Problem:
    """Return in words what ended the test without any."""
    return Problem(
        "window.test-ended",
        f"The speed test ended unexpectedly ({describe_end(code, said)}).",
        "Make it once more: that also removes what this one left on the server.",
    )
