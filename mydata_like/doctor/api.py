"""How quickly the server's web application answers, and how many requests it takes at once."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from mydata_like.doctor.findings import Measured, Stage, Unit, connected
from mydata_like.doctor.looks import Budget

CONNECTIONS: Final = (1, 2, 4)
_ANSWERS: Final = 5  # to each question

Questions = Mapping[str, Callable[[], object]]  # each asks the server one thing, in one request


def measure_api(questions: Questions, budget: Budget) -> Iterator[Measured]:
    """Yield how long each answer takes, then how many of the last question's come in a second."""
    for name, ask in questions.items():
        if budget.spent():
            return
        seconds = budget.time(ask, _ANSWERS)
        yield Measured(Stage.API, name, Unit.SECONDS, seconds)
    *_, ask = questions.values()
    for connections in CONNECTIONS:
        if budget.spent():
            return
        with ThreadPoolExecutor(connections) as threads:

            def act(threads: ThreadPoolExecutor = threads, number: int = connections) -> float:
                return float(len(list(threads.map(lambda _: ask(), range(number * 2)))))

            yield Measured(Stage.API, connected(connections), Unit.REQUESTS, budget.look(act))
