"""A controller without an engine, whose state a test sets and whose commands it records."""

from datetime import UTC, datetime

from mydata_like.core.errors import Problem
from mydata_like.gui.controller import WindowController
from mydata_like.gui.run_state import LiveView, PastRunState
from mydata_like.gui.tasks import Tasks

BEGAN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
ENDED = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
FULL = Problem("staging.full", "The staging area is full.", "Tell the administrator.")
AWAY = Problem("server.unreachable", "The server cannot be reached.")
QUIET = Problem("limits.quiet-hours", "These are quiet hours.")
NOT_APPROVED = Problem("uploader.not-approved", "The key awaits approval.")


class ScriptedController(WindowController):
    """A controller with a state set by the test; `orders` has the names of its commands."""

    live = LiveView((), ())

    def __init__(self):
        self.threads = Tasks()
        super().__init__(None, self.threads)
        self.orders = []

    def turn(self, **changes):
        """Change the state."""
        self._set(**changes)

    def choose(self, **changes):
        """Change settings of the window."""
        window = self.settings.window.with_values(**changes)
        self.settings = self.settings.with_values(window=window)

    def _order(self, name, **fields):
        self.orders.append(name)


def run_that(**sums):
    """Return a past run; all of its files are safe by default."""
    found = sums.setdefault("found", 3)
    lost = sums.get("waiting", 0) + sums.get("failed", 0)
    sums.setdefault("verified", found - lost)
    return PastRunState(started=BEGAN, finished=ENDED, **sums)
