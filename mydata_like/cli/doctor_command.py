"""`mydata-like doctor`: the speed test, which finds the bottleneck and recommends settings."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Annotated, Any, Final, NamedTuple

import typer

from mydata_like.app.logging_setup import open_log
from mydata_like.app.registration import load_trusting
from mydata_like.app.run_request import RunObserver
from mydata_like.app.speedtest_service import SpeedTest, SpeedTestRequest, open_speed_test
from mydata_like.cli.options import AcceptOption, ConfigOption, JsonOption, SetOption
from mydata_like.cli.output import (
    Shape,
    choose_shape,
    log_event,
    print_failure,
    print_json,
    print_lines,
)
from mydata_like.cli.stdin_commands import follow_standard_input, stopped_by_signals
from mydata_like.core.errors import Cancelled, UploaderError
from mydata_like.core.formatting import format_size
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.engine.run import INTERRUPTED_EXIT
from mydata_like.speedtest.prediction import SIZES, Prediction, Workload
from mydata_like.speedtest.recommendations import Diagnosis, Recommendation
from mydata_like.speedtest.results import (
    FULL,
    QUICK,
    LocalMachine,
    Measurement,
    SpeedTestResult,
    StageResult,
    Unit,
)

_UNSURE = 0.25  # of the median: a wider spread is shown


class SpeedTestArguments(NamedTuple):
    """The options of `mydata-like doctor`.

    `latest` uses the latest test instead of a new one; `attended` stops when standard input closes.
    """

    order: SpeedTestRequest
    assignments: tuple[str, ...]
    host_keys: tuple[str, ...]
    shape: Shape
    apply: bool
    latest: bool
    attended: bool


class SpeedTestOutput(NamedTuple):
    """One result: lines of text, and an event with its fields for programs."""

    lines: Sequence[str]
    event: str = ""
    fields: Mapping[str, object] = {}


Tell = Callable[[SpeedTestOutput], None]


def examine(
    config: ConfigOption = None,
    assignments: SetOption = None,
    accept: AcceptOption = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Take about 15 seconds. The figures are less reliable.")
    ] = False,
    apply: Annotated[
        bool,
        typer.Option("--apply", help="Save the recommended settings and measure the improvement."),
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
    """Measure each stage of an upload, find the bottleneck, and recommend faster settings.

    The test takes at most a minute and sends at most 1 GB, which it removes from the server again.
    """
    if latest and not apply:
        raise typer.BadParameter("--latest goes with --apply.")
    asked = SpeedTestArguments(
        order=SpeedTestRequest(config=config, effort=QUICK if quick else FULL, anyway=anyway),
        assignments=tuple(assignments or ()),
        host_keys=tuple(accept or ()),
        shape=choose_shape(events=events, brief=False, as_json=as_json),
        apply=apply,
        latest=latest,
        attended=attended and events,
    )
    try:
        _run_test(asked)
    except UploaderError as error:
        print_failure(error, asked.shape)
        raise typer.Exit(error.exit_code) from None
    except Cancelled:
        raise typer.Exit(INTERRUPTED_EXIT) from None


def _run_test(asked: SpeedTestArguments) -> None:
    order = asked.order
    loaded = load_trusting(order.config, asked.assignments, asked.host_keys)
    settings, cancel = loaded.settings, CancelFlag()
    if asked.attended:
        follow_standard_input(lambda _: None, partial(cancel.set, "standard input was closed"))
    with (
        open_log(settings, order.config) as redaction,
        stopped_by_signals(cancel),
    ):
        observer = RunObserver(emit=log_event, cancel=cancel, hide=redaction.add)
        with open_speed_test(settings, order, observer) as test:
            record = _examine(test, asked)
    if asked.shape is not Shape.TEXT:
        event = {"event": "test_finished"} if asked.shape is Shape.EVENTS else {}
        print_json(event | record)


def _examine(test: SpeedTest, asked: SpeedTestArguments) -> dict[str, Any]:
    """Measure or load a test, apply its recommendations, and return its record."""
    report = _TELLERS[asked.shape]
    if test.obstacle:
        report(SpeedTestOutput([test.obstacle, ""]))
    record = test.recall() if asked.latest else _measure(test, report)
    known = len(test.findings.unknown)
    try:
        if asked.apply:
            _apply(test, record, report, afresh=asked.latest)
    finally:
        unknown = test.findings.unknown
        record["findings"]["unknown"] = list(unknown)
        test.keep(record)
        report(SpeedTestOutput(unknown[known:]))
    return record


def _measure(test: SpeedTest, report: Tell) -> dict[str, Any]:
    with closing(test.measure()) as parts:
        for measured in parts:
            report(SpeedTestOutput([describe(measured)], "stage_measured", measured.as_record()))
    verdict = test.judge()
    report(SpeedTestOutput(list(conclude(verdict, test.findings))))
    return test.as_record(verdict)


def _apply(test: SpeedTest, record: dict[str, Any], report: Tell, *, afresh: bool) -> None:
    """Save the recommended settings and measure the improvement; `afresh` measures both states.

    The replaced values are recorded before the measurement, so that they survive an interrupted
    test. Values that an earlier `_apply` replaced are kept, so that all of them can be restored.
    """
    earlier = record.setdefault("proof", None) or {}
    changes = test.find_applicable(record)
    if not changes:
        said = "Nothing was changed: no setting is left that may be changed here and is faster."
        report(SpeedTestOutput(["", said]))
        return
    before = {one.what: one for one in (test.measure_files() if afresh else test.findings.measured)}
    applied = {"changes": changes, "replaced": test.find_replaced(changes)}
    gains = test.apply(changes)
    measured: list[object] = []
    record["proof"] = {name: earlier.get(name, {}) | new for name, new in applied.items()}
    record["proof"]["measured"] = measured
    test.keep(record)
    lines = [f"Set {key} to {_format_value(value)}." for key, value in changes.items()]
    report(SpeedTestOutput(["", *lines], "settings_applied", applied))
    for after in gains:
        was = before.get(after.what)
        first = f"{format_value(was)} before, " if was else ""
        fields = {"before": was and was.as_record(), "after": after.as_record()}
        report(
            SpeedTestOutput(
                [f"{after.what}: {first}{format_value(after)} now"], "gain_measured", fields
            )
        )
        measured.append(fields)


def _format_value(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _print_lines(told: SpeedTestOutput) -> None:
    """Print lines and flush them, so that a reader of a pipe gets them immediately."""
    print_lines(told.lines)
    sys.stdout.flush()


def _print_record(told: SpeedTestOutput) -> None:
    if told.event:
        print_json({"event": told.event, **told.fields})


_TELLERS: Final[Mapping[Shape, Tell]] = {
    Shape.TEXT: _print_lines,
    Shape.EVENTS: _print_record,
    Shape.JSON: lambda _: None,
}


def describe(measured: Measurement) -> str:
    """Return a row of the table: stage, measurement, median, and the spread if it is wide."""
    spread = ""
    if measured.spread > _UNSURE:
        low, high = min(measured.samples), max(measured.samples)
        spread = f"  ({_format(low, measured.unit)} to {_format(high, measured.unit)})"
    note = f"  {measured.note}" if measured.note else ""
    return f"{measured.stage:<12} {measured.what:<38} {format_value(measured):>14}{spread}{note}"


def format_value(measured: Measurement) -> str:
    """Return the median with its unit."""
    return _format(measured.value, measured.unit)


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


def conclude(verdict: Diagnosis, findings: SpeedTestResult) -> Iterator[str]:
    """Yield the table of stages, the bottleneck, and the recommendations."""
    yield from ("", _describe_machines(findings), "", *_tabulate(verdict.predictions))
    yield from ("", verdict.sentence)
    yield from (_advise(advice) for advice in verdict.advice)
    if others := _describe_others(findings.here):
        yield others
    yield from findings.unknown


def _describe_others(here: LocalMachine) -> str:
    """Return how much CPU other programs used before or after the test, if it was much."""
    moments = (("began", here.busy), ("ended", here.busy_after))
    shares = [f"{busy:.0%} when the test {word}" for word, busy in moments if (busy or 0) > _UNSURE]
    return f"Other programs used CPU time of this computer: {', '.join(shares)}." if shares else ""


def _describe_machines(findings: SpeedTestResult) -> str:
    """Return the processors of both computers, as far as they are known."""
    here = _describe_machine(findings.here)
    if findings.one_machine:
        return f"This computer, which is also the staging host, has {here}."
    if findings.in_folder:  # nothing is encrypted
        return f"This computer has {_describe_machine(findings.here._replace(aes=None))}."
    if findings.there.cpus is None:
        return f"This computer has {here}."
    return f"This computer has {here}, the staging host {_describe_machine(findings.there)}."


def _describe_machine(machine: LocalMachine) -> str:
    aes = {True: ", encrypting by AES", False: " without AES", None: ""}[machine.aes]
    return f"{machine.cpus or 1} core{'s' * (machine.cpus != 1)}{aes}"


def _tabulate(predictions: Sequence[Prediction]) -> Iterator[str]:
    """Yield a row for each stage: its speed on its own, and where it is the bottleneck."""
    yield f"{'alone':<12}" + "".join(f"{one.workload + ' files':>24}" for one in predictions)
    for stage in StageResult:
        cells = [_describe_rate(one, stage) for one in predictions]
        if any(cells):
            yield (f"{stage:<12}" + "".join(f"{cell:>24}" for cell in cells)).rstrip()


def _describe_rate(prediction: Prediction, stage: StageResult) -> str:
    if stage not in prediction.rates:
        return ""
    rate = prediction.rates[stage]
    mark = "limit: " if stage is prediction.limit else ""
    if prediction.workload is Workload.LARGE:
        return f"{mark}{format_size(rate)}/s"
    return f"{mark}{rate / SIZES[prediction.workload]:,.0f} files/s"


def _advise(advice: Recommendation) -> str:
    return f"- {advice.text} ({advice.workload} files: x {advice.gain:.1f})"
