"""Added folders and files that no run has accepted yet."""

from collections.abc import Sequence
from typing import Final

from mydata_like.core.events import (
    CommandDone,
    CommandRefused,
    Event,
    RunFinished,
    RunStarted,
)

Order = tuple[str, dict[str, object]]  # the name of a command, and its fields

ADD: Final = "add_source"
# Why a run refuses a source that the next one can accept.
_LATER: Final = ("source.later", "command.too-late")


class PendingSources:
    """Tracks added sources from the command to the engine until a run has accepted them."""

    def __init__(self) -> None:
        self._sent: dict[int, Order] = {}  # by the number of the command, not answered yet
        self._kept: list[Order] = []  # the engine keeps them for its next run
        self._refused: list[Order] = []  # by a run that accepts no more
        self._running = False

    @property
    def waiting(self) -> bool:
        """Whether the engine keeps sources for a run that has not started."""
        return bool(self._kept)

    def track_sent(self, number: int, order: Order) -> None:
        """Track a command that was sent to the engine."""
        self._sent[number] = order

    def track_kept(self, orders: Sequence[Order]) -> None:
        """Track the orders with which the engine was started."""
        self._kept.extend(orders)

    def follow(self, event: Event) -> None:
        """Update from an event of the engine."""
        match event:
            case RunStarted():
                self._running = True
                self._kept.clear()
            case RunFinished():
                self._running = False
            case CommandDone() | CommandRefused():
                self._take_answer(event)
            case _:
                pass

    def take_back(self) -> list[Order]:
        """Return the orders that an ended engine has left without a run."""
        left = [*self._kept, *self._sent.values(), *self._refused]
        self._kept, self._sent, self._refused, self._running = [], {}, [], False
        return left

    def _take_answer(self, event: CommandDone | CommandRefused) -> None:
        order = self._sent.pop(event.id, None) if isinstance(event.id, int) else None
        if order is None:
            return
        if isinstance(event, CommandRefused):
            if event.problem.code in _LATER:
                self._refused.append(order)
        elif not self._running:
            self._kept.append(order)


def split_orders(orders: Sequence[Order]) -> tuple[list[str], list[Order], list[Order]]:
    """Return the options of a single run, the orders in them, and the orders to send as commands.

    If only added folders, or one folder of the data directory, are wanted, the run scans nothing
    else. Orders that no option can express (a path that is not text, a name with a slash) are
    sent as commands to a run over the data directory.
    """
    if len(orders) == 1 and "only" in orders[0][1]:
        return [f"--only={orders[0][1]['only']}"], [], []
    if any(name != ADD for name, _ in orders):
        return [], [], [order for order in orders if order[0] != "start"]
    optional = [order for order in orders if _fits_option(order)]
    # The options apply to all sources: either all have a kind (`as`), or none has.
    optional = [order for order in optional if ("as" in order[1]) == ("as" in optional[0][1])]
    return (
        [option for _, fields in optional for option in _options(fields)],
        optional,
        [order for order in orders if order not in optional],
    )


def _options(fields: dict[str, object]) -> list[str]:
    options = [f"--source={fields['path']}"]
    names = fields.get("as")
    if isinstance(names, list):
        options.append(f"--as={'/'.join(names)}")
    return options


def _fits_option(order: Order) -> bool:
    names = order[1].get("as", [])
    try:
        str(order[1]["path"]).encode()
    except UnicodeEncodeError:
        return False
    return isinstance(names, list) and not any("/" in name for name in names)
