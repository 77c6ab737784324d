"""What the benchmark of the number of channels makes of a run's events."""

from benchmarks.channels import AUTOMATIC, Found, Trace, note


def follow(*events: tuple[float, str, dict[str, int]]) -> Trace:
    trace, sent = Trace([], []), dict[int, int]()
    for at, name, fields in events:
        note(trace, sent, at, {"event": name, **fields})
    return trace


def test_speed_is_of_all_transfers_together() -> None:
    trace = follow(
        (1.0, "transfer_progressed", {"transfer": 1, "bytes": 10}),
        (2.0, "transfer_progressed", {"transfer": 2, "bytes": 30}),
        (4.0, "transfer_finished", {"transfer": 1, "bytes": 50}),
    )

    assert trace.speed() == 80 / 4


def test_a_run_has_settled_with_its_last_change_and_is_judged_from_there() -> None:
    trace = follow(
        (1.0, "transfer_progressed", {"transfer": 1, "bytes": 10}),
        (2.0, "limits_changed", {"channels": 4}),
        (6.0, "transfer_finished", {"transfer": 1, "bytes": 210}),
    )
    fixed = follow(
        (2.0, "transfer_progressed", {"transfer": 1, "bytes": 40}),
        (4.0, "transfer_finished", {"transfer": 1, "bytes": 160}),
    )
    found = Found(
        "large",
        28,
        {
            2: [follow((1.0, "transfer_finished", {"transfer": 1, "bytes": 1}))],
            4: [fixed],
            AUTOMATIC: [trace],
        },
    )

    assert trace.settled == 2.0
    assert found.best == 4
    assert found.settled_share == (200 / 4) / (120 / 2)


def test_a_run_that_changed_nothing_had_settled_at_once() -> None:
    trace = follow((2.0, "transfer_finished", {"transfer": 1, "bytes": 10}))

    assert trace.settled == 0.0
    assert trace.speed(trace.settled) == trace.speed()
