"""Asks something beside the GUI thread; only the answer to the latest asking counts."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from mydata_like.core.errors import Cancelled, UploaderError
from mydata_like.core.ports import Cancel
from mydata_like.engine.workers import CancelFlag
from mydata_like.gui.tasks import Tasks

TYPING = 400  # milliseconds after the last key within which nothing is asked yet

Ask = Callable[[Cancel], Any]


class Question(QObject):
    """One thing that is asked again and again: a new asking makes the one before worthless."""

    answered = Signal(object)
    failed = Signal(object)  # an UploaderError

    def __init__(self, tasks: Tasks, parent: QObject) -> None:
        super().__init__(parent)
        self._tasks = tasks
        self._ask: Ask | None = None
        self._cancel: CancelFlag | None = None
        self.lost = False  # the latest asking brought no answer
        self._timer = QTimer(self, singleShot=True)
        self._timer.timeout.connect(self._begin)

    @property
    def open(self) -> bool:
        """Whether an answer is awaited."""
        return self._cancel is not None

    def ask(self, ask: Ask, *, typed: bool = False) -> None:
        """Ask at once, or when the person has stopped typing."""
        self.forget()
        self._ask, self._cancel = ask, CancelFlag()
        self._timer.start(TYPING if typed else 0)

    @Slot()
    def forget(self) -> None:
        """Ask no more: what is still on its way ends soon, and its answer is ignored."""
        self.lost = False
        self._timer.stop()
        if self._cancel is not None:
            self._cancel.set()
        self._ask = self._cancel = None

    @Slot()
    def _begin(self) -> None:
        assert self._ask is not None
        assert self._cancel is not None
        self._tasks.run(partial(_find_answer, self._ask, self._cancel), self._take)

    @Slot(object)
    def _take(self, answer: "_Answer") -> None:
        if answer.cancel is not self._cancel:
            return
        self._ask = self._cancel = None
        self.lost = answer.error is not None
        if answer.error is not None:
            self.failed.emit(answer.error)
        else:
            self.answered.emit(answer.value)


@dataclass(frozen=True, slots=True)
class _Answer:
    cancel: CancelFlag  # which asking it answers
    value: Any = None
    error: UploaderError | None = None


def _find_answer(ask: Ask, cancel: CancelFlag) -> _Answer:
    """Run in a thread."""
    try:
        return _Answer(cancel, ask(cancel))
    except UploaderError as error:
        return _Answer(cancel, error=error)
    except Cancelled:
        return _Answer(cancel)
