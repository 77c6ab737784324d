"""`mydata-like doctor`: the speed test, which finds the slowest part and recommends settings."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from statistics import median
from typing import Annotated, Any, Final

import typer

from mydata_like.app.logging_setup import open_log
from mydata_like.app.registration import load_trusting
from mydata_like.app.run_request import RunObserver
from mydata_like.app.speedtest_records import apply_advice
from mydata_like.app.speedtest_service import SpeedTestRequest, finish_speed_test, open_speed_test
from mydata_like.cli.options import AcceptOption, ConfigOption, JsonOption, SetOption
from mydata_like.cli.output import Shape, choose_shape, log_event, print_json, print_lines
from mydata_like.cli.stdin_commands import follow_standard_input, stopped_by_signals
from mydata_like.core.formatting import format_size
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.settings.schema import Settings
from mydata_like.speedtest.recommendations import describe
from mydata_like.speedtest.results import (
    FULL,
    QUICK,
    LocalMachine,
    Measurement,
    SettingsComparison,
    SpeedTestResult,
    Unit,
)

_UNSURE: Final = 0.25  # of the median: a wider spread is shown


def examine(
    config: ConfigOption = None,
    assignments: SetOption = None,
    accept: AcceptOption = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Take about 15 seconds. The figures are less reliable.")
    ] = False,
    apply: Annotated[
        bool,
        typer.Option("--apply", help="Save the recommended settings."),
    ] = False,
    latest: Annotated[
        bool,
        typer.Option(
            "--latest",
            help="With --apply: use the recommendations of the last test instead of a new one.",
        ),
    ] = False,
    anyway: Annotated[
        bool,
        typer.Option(
            "--anyway", help="Test even if the settings protect the instrument or network now."
        ),
    ] = False,
    as_json: JsonOption = False,
    events: Annotated[
        bool,
        typer.Option(
            "--events", help="Print each figure as a line of JSON as soon as it is measured."
        ),
    ] = False,
    attended: Annotated[
        bool, typer.Option("--attended", help="With --events: stop when standard input closes.")
    ] = False,
) -> None:
    """Measure each part of an upload, and compare settings by sending test files.

    Recommended are only settings that were faster twice. The test takes at most a minute and sends
    at most 1 GB, which it removes from the server again.
    """
    if latest and not apply:
        raise typer.BadParameter("--latest goes with --apply.")
    shape = choose_shape(events=events, brief=False, as_json=as_json)
    order = SpeedTestRequest(config=config, effort=QUICK if quick else FULL, anyway=anyway)
    record: dict[str, Any] = {}
    settings = load_trusting(config, tuple(assignments or ()), tuple(accept or ())).settings
    with open_log(settings, config) as redaction:
        if not latest:
            observer = RunObserver(emit=log_event, cancel=CancelFlag(), hide=redaction.add)
            record = _measure(settings, order, observer, shape, attended=attended and events)
        if apply:
            record = apply_advice(settings, config)
            _report_applied(record["proof"], shape)
    if shape is not Shape.TEXT:
        print_json(({"event": "test_finished"} if shape is Shape.EVENTS else {}) | record)


def _measure(
    settings: Settings,
    order: SpeedTestRequest,
    observer: RunObserver,
    shape: Shape,
    *,
    attended: bool,
) -> dict[str, Any]:
    """Run a test, report each result at once, and return the test's record."""
    cancel = observer.cancel
    if attended:
        follow_standard_input(lambda _: None, partial(cancel.set, "standard input was closed"))
    with stopped_by_signals(cancel), open_speed_test(settings, order, observer) as test:
        if test.obstacle:
            _report([test.obstacle, ""], shape)
        with closing(test.measure()) as results:
            for result in results:
                name = "stage_measured" if isinstance(result, Measurement) else "settings_compared"
                _report([describe_result(result)], shape, {"event": name, **result.as_record()})
        record = finish_speed_test(settings, order, test.findings)
    _report(list(conclude(test.findings)), shape)
    return record


def _report_applied(proof: Mapping[str, Any] | None, shape: Shape) -> None:
    if proof is None:
        _report(["", "Nothing was changed: no setting is left that was faster."], shape)
        return
    changes = [
        f"{key} is set to {', '.join(map(str, value)) if isinstance(value, list) else value}."
        for key, value in proof["changes"].items()
    ]
    _report(["", *changes], shape, {"event": "settings_applied", **proof})


def _report(lines: Sequence[str], shape: Shape, event: Mapping[str, object] | None = None) -> None:
    """Print lines of text, or an event for programs, so that a reader of a pipe gets it at once."""
    if shape is Shape.TEXT:
        print_lines(lines)
        sys.stdout.flush()
    elif shape is Shape.EVENTS and event:
        print_json(event)


def describe_result(result: Measurement | SettingsComparison) -> str:
    """Return a row of the table: what was measured, its median, and the spread if it is wide."""
    if isinstance(result, SettingsComparison):
        unit, workload = result.workload.unit, result.workload
        speeds = (
            f"{_format(median(result.after), unit)}, {_format(median(result.before), unit)} now"
        )
        won = f"faster twice (x {result.gain:.2f})" if result.won else "not faster twice"
        return f"{'compared':<12} {result.text} {workload.title()} files: {speeds}: {won}"
    value, spread = _format(result.value, result.unit), ""
    if result.spread > _UNSURE:
        ends = (_format(end, result.unit) for end in (min(result.samples), max(result.samples)))
        spread = f"  ({' to '.join(ends)})"
    note = f"  {result.note}" if result.note else ""
    return f"{result.stage:<12} {result.what:<38} {value:>14}{spread}{note}"


def _format(value: float, unit: Unit) -> str:
    match unit:
        case Unit.BYTES:
            return f"{format_size(value)}/s"
        case Unit.SECONDS:
            return f"{value * 1000:.1f} ms"
        case Unit.SHARE:
            return f"{value:.0%}"
        case _:
            return f"{value:,.0f} {unit}"


def conclude(findings: SpeedTestResult) -> Iterator[str]:
    """Yield the computers, the slowest parts, and the recommendations."""
    here, there = findings.here, findings.there
    yield ""
    text = f"This computer has {_describe_machine(here)}"
    if there.cpus:
        text += f", the staging host {_describe_machine(there)}"
    yield f"{text}."
    yield from ("", *describe(findings))
    for one in findings.compared:
        if one.won:
            yield f"- {one.text} ({one.workload} files: x {one.gain:.2f})"
    moments = (("began", here.busy), ("ended", here.busy_after))
    shares = [f"{busy:.0%} when the test {word}" for word, busy in moments if (busy or 0) > _UNSURE]
    if shares:
        yield f"Other programs used CPU time of this computer: {', '.join(shares)}."
    yield from findings.unknown


def _describe_machine(machine: LocalMachine) -> str:
    aes = {True: ", encrypting by AES", False: " without AES", None: ""}[machine.aes]
    return f"{machine.cpus or 1} core{'s' * (machine.cpus != 1)}{aes}"
