"""`mydata-like verify`: read the files of a destination of `copy` and compare their checksums."""

import re
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from random import Random
from threading import Lock
from typing import Annotated, Any, Final, TextIO

import typer

from mydata_like.app.bucket_place import BucketPlace
from mydata_like.app.host_login import parse_destination
from mydata_like.app.logging_setup import open_log
from mydata_like.app.plain_destination import open_target
from mydata_like.app.restore_test import MOST, RestoreReport, name_fault, run_restore_test
from mydata_like.app.verify_service import (
    FileFault,
    NotSince,
    Sample,
    Scope,
    Surroundings,
    VerifyProgress,
    VerifyReport,
    WrongFile,
    verify_destination,
)
from mydata_like.cli.options import (
    AcceptHostOption,
    BandwidthOption,
    ConfigOption,
    JsonOption,
)
from mydata_like.cli.output import (
    NAMED_PROBLEMS,
    Shape,
    describe_last_restore,
    describe_last_verify,
    describe_problem,
    name_destination,
    print_failure,
    print_json,
    print_lines,
    reword,
)
from mydata_like.cli.prompts import find_prompts
from mydata_like.cli.stdin_commands import stopped_by_signals
from mydata_like.cli.terminal import drawing_stream
from mydata_like.core.errors import Cancelled, UploaderError
from mydata_like.core.formatting import format_files, format_path, format_size
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.engine.run import INTERRUPTED, INTERRUPTED_EXIT
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.schema import Settings

HOW: Final = {  # the kinds of evidence
    "host": "hashed on the host now: {0.program}",
    "read-back": "read back and hashed now: {0.label}",
    "read-back-cached": "read, possibly from memory, and hashed now: {0.label}",
    "service": "compared with the service's ETags; read where they are no checksums",
}
READ: Final = "Note: {} objects are downloaded. The service may charge for this."
ASKED: Final = "Note: objects are not read: the service tells its ETags. To read them, add --read."
REDRAWN: Final = 0.2  # seconds between two pictures of the progress
_SHOWN: Final = 8  # digits of a checksum
_PERCENT: Final = re.compile(r"(\d{1,3}(?:\.\d{1,6})?) ?%?")
_AGE: Final = re.compile(r"(\d{1,6}) ?([mhdw])")
_UNITS: Final = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


def verify(
    destination: Annotated[
        str,
        typer.Argument(
            metavar="DESTINATION",
            help="A destination of copy: [USER@]HOST:PATH, ssh://[USER@]HOST[:PORT]/PATH, a "
            "local folder or s3://BUCKET/PREFIX.",
        ),
    ],
    *,
    sample: Annotated[
        str, typer.Option("--sample", metavar="P%", help="Verify a random part, such as 5%.")
    ] = "",
    older: Annotated[
        str,
        typer.Option(
            "--older",
            metavar="AGE",
            help="Verify only what was last verified, or proven by copy, longer ago than this: "
            "30d, 12h, 2w. Also continues after an interruption.",
        ),
    ] = "",
    read: Annotated[
        bool,
        typer.Option(
            "--read",
            help="Download the objects of a bucket and hash them. Without it, the service is asked "
            "for its ETags. Files on hosts and in folders are always read.",
        ),
    ] = False,
    restore_test: Annotated[
        int,
        typer.Option(
            "--restore-test",
            metavar="N",
            min=0,
            max=MOST,
            help="Fetch N files, mostly those that were not verified for the longest time, as get "
            "does, and compare them here. Nothing is written. Also continues after an "
            "interruption.",
        ),
    ] = 0,
    bandwidth: BandwidthOption = 0.0,
    accept: AcceptHostOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Hash all files that copies have put at a destination, and compare them with its manifest.

    What is missing or has other bytes is named, and so is what is there without being listed.
    Neither the source nor this computer's records are needed. The exit code is 1 if a file is not
    as it is listed.
    """
    scope = _parse_scope(sample, older)
    if restore_test and (scope or read):
        raise typer.BadParameter("--restore-test excludes --sample, --older and --read.")
    if bandwidth and not restore_test:
        raise typer.BadParameter("--bandwidth limits what --restore-test fetches.")
    settings = None
    try:
        target = parse_destination(destination)
        settings = name_destination(target, destination)
        with ExitStack() as stack:
            stack.enter_context(open_log(Settings(), config))
            place = open_target(target, config, tuple(accept or ()), find_prompts())
            if isinstance(place, BucketPlace):
                place = replace(place, reads=read)
                if not as_json:
                    number = f"{restore_test:,}" if restore_test else "all"
                    print_lines([READ.format(number) if read or restore_test else ASKED])
            cancel = CancelFlag()
            stack.enter_context(stopped_by_signals(cancel))
            line = ProgressLine(sys.stderr, cancel)
            stack.callback(line.clear)
            around = Surroundings(SystemClock(), cancel, Random(), line.show)  # noqa: S311 - a sample
            report: VerifyReport | RestoreReport
            if restore_test:
                report = run_restore_test(place, restore_test, bandwidth, config, around)
            else:
                report = verify_destination(place, scope, config, around)
    except UploaderError as error:
        if as_json:
            print_json({"problem": error.problem._asdict()})
        else:
            print_failure(error, Shape.TEXT, settings)
        raise typer.Exit(error.exit_code) from None
    except (Cancelled, KeyboardInterrupt):
        if as_json:
            print_json({"problem": INTERRUPTED._asdict()})
        raise typer.Exit(INTERRUPTED_EXIT) from None
    if as_json:
        record = _record_test(report) if isinstance(report, RestoreReport) else _record(report)
        print_json({"destination": place.name, **record})
    elif isinstance(report, RestoreReport):
        print_lines(_describe_test(report, settings))
    else:
        print_lines(_describe(report, place.name, settings))
    raise typer.Exit(report.exit_code)


def _parse_scope(sample: str, older: str) -> Scope:
    """Return which files are to be verified; raises `BadParameter`."""
    if sample and older:
        raise typer.BadParameter("--sample and --older exclude each other.")
    if sample:
        percent = _PERCENT.fullmatch(sample)
        if not percent or not 0 < float(percent[1]) <= 100:
            raise typer.BadParameter("--sample takes a percentage, such as 5%.")
        return Sample(float(percent[1]))
    if older:
        age = _AGE.fullmatch(older)
        if not age:
            raise typer.BadParameter("--older takes an age, such as 30d, 12h or 2w.")
        return NotSince(int(age[1]) * _UNITS[age[2]])
    return None


class ProgressLine:
    """One line on a terminal that is drawn again and again; nothing elsewhere."""

    def __init__(self, stream: TextIO, cancel: CancelFlag) -> None:
        self._stream = drawing_stream(stream) if stream.isatty() else None
        self._cancel = cancel
        self._lock = Lock()
        self._due = 0.0

    def show(self, progress: VerifyProgress) -> None:
        """Draw the progress; called from any thread."""
        with self._lock:
            now = time.monotonic()
            if self._stream is None or self._cancel.is_set() or now < self._due:
                return
            self._due = now + REDRAWN
            self._draw(_describe_progress(progress))

    def clear(self) -> None:
        """Remove the line."""
        with self._lock:
            if self._stream is not None:
                self._draw("")
            self._stream = None

    def _draw(self, text: str) -> None:
        assert self._stream is not None
        self._stream.write(f"\r\x1b[K{text}")
        self._stream.flush()


def _describe_progress(progress: VerifyProgress) -> str:
    match progress.step:
        case "records":
            return f"Reading the records of the server: {progress.files:,} files"
        case "manifest":
            return f"Reading the manifest: {progress.files:,} files"
        case "files":
            size, whole = format_size(progress.size), format_size(progress.of_size)
            return f"{progress.files:,} of {progress.of:,} files, {size} of {whole}"
        case "receipt":
            return f"{progress.files:,} of {progress.of:,} files"
        case _:
            return f"Looking for other files: {progress.files:,} seen"


def _describe(report: VerifyReport, place: str, settings: Settings) -> Iterator[str]:
    """Yield the result as lines; the last ones say how many files are as they are listed."""
    if report.last is not None:
        yield describe_last_verify(report.last)
    for fault in FileFault:
        files = [it for it in report.wrong if it.fault is fault]
        for it in files[:NAMED_PROBLEMS]:
            yield f"{fault.value.capitalize()}: {format_path(it.path)}{_describe_change(it)}"
        if len(files) > NAMED_PROBLEMS:
            yield f"{fault.value.capitalize()}: {len(files) - NAMED_PROBLEMS:,} more."
    for path in report.named[:NAMED_PROBLEMS]:
        yield f"Not listed: {format_path(path)}"
    if report.unlisted and report.unlisted > NAMED_PROBLEMS:
        yield f"Not listed: {report.unlisted - NAMED_PROBLEMS:,} more."
    yield from (f"Damaged: {it.message}" for it in report.damaged)
    if report.damaged:
        yield (
            "What a damaged part of the manifest lists was not checked, and counts as not listed. "
            "The next copy of the same files lists them again."
        )
    yield from _describe_counts(report, place)
    if report.unsaved:
        yield f"This result cannot be kept at the destination: {describe_problem(report.unsaved)}"
    if report.ended:
        yield from reword([describe_problem(report.ended)], settings)
        yield _describe_rest(report)


def _describe_test(report: RestoreReport, settings: Settings) -> Iterator[str]:
    """Yield the result of a restore test as lines; the last ones say how many files came back."""
    result = report.result
    if report.last is not None:
        yield describe_last_restore(report.last)
    for path, problem in report.wrong[:NAMED_PROBLEMS]:
        fault = name_fault(problem)
        why = "" if fault in ("missing", "changed") else f": {describe_problem(problem)}"
        yield f"{fault.capitalize()}: {format_path(path)}{why}"
    if len(report.wrong) > NAMED_PROBLEMS:
        yield f"{len(report.wrong) - NAMED_PROBLEMS:,} more did not come back as listed."
    yield from (f"Damaged: {it.message}" for it in report.damaged)
    if report.unsaved:
        yield f"This result cannot be kept at the destination: {describe_problem(report.unsaved)}"
    if report.ended:
        yield from reword([describe_problem(report.ended)], settings)
        left = result.chosen - result.restored - sum(result.wrong.values())
        yield f"{left:,} files were not fetched yet. The same command continues."
    here = f"; {result.compared:,} also compared with the files here" if result.compared else ""
    yield (
        f"{result.restored:,} of {result.chosen:,} files came back as listed (fetched and hashed "
        f"now: {report.algorithm.label}), {format_size(report.size)}; a random sample of "
        f"{result.listed:,}{here}."
    )


def _record_test(report: RestoreReport) -> dict[str, Any]:
    """Return the result of a restore test as plain values for JSON."""
    return {
        **report.result._asdict(),
        "checksum": report.algorithm.value,
        "bytes": report.size,
        "files": [
            {"path": format_path(path), "fault": name_fault(problem), **problem._asdict()}
            for path, problem in report.wrong
        ],
        "damaged": [it._asdict() for it in report.damaged],
        "problem": report.ended and report.ended._asdict(),
        "unsaved": report.unsaved and report.unsaved._asdict(),
        "last": report.last and report.last._asdict(),
    }


def _describe_rest(report: VerifyReport) -> str:
    """Return what an incomplete check has left, and how to continue."""
    match report.scope:
        case Sample():
            more = ""
        case NotSince():
            more = " The same command continues."
        case None:
            more = " With --older 1d, the next one omits what was verified in the last day."
    left = report.chosen - report.checked
    return (
        f"The verification is incomplete: {left:,} of {format_files(report.chosen)} were not "
        f"checked.{more}"
    )


def _describe_counts(report: VerifyReport, place: str) -> Iterator[str]:
    if report.unlisted:
        yield f"The manifest does not list {format_files(report.unlisted)} of the destination."
    wrong = [f"{number:,} {fault.value}" for fault in FileFault if (number := report.count(fault))]
    if report.count(FileFault.MISSING):
        yield "A file is also missing if this account may not enter its folder."
    if wrong:
        yield f"{', '.join(wrong)}."
    others = report.listed - report.chosen
    match report.scope:
        case Sample():
            scope = f"; a random sample of {report.listed:,}"
        case NotSince() if others:
            scope = f"; {format_files(others)} verified or proven more recently"
        case _:
            scope = ""
    good = report.checked - len(report.wrong)
    if report.checked:
        how = HOW[report.evidence].format(report.algorithm)
        are = "file is" if report.checked == 1 else "files are"
        yield (
            f"{good:,} of {report.checked:,} {are} as listed ({how}), "
            f"{format_size(report.size)}{scope}."
        )
    elif not report.chosen and not report.ended:
        yield f"Nothing was to be verified at {place}{scope}."


def _describe_change(file: WrongFile) -> str:
    if file.found is None:
        return f" (listed {file.checksum[:_SHOWN]}...)" if file.fault is FileFault.CHANGED else ""
    before = after = ""
    if file.found.file.size != file.size:
        before, after = f"{file.size:,} bytes, ", f"{file.found.file.size:,} bytes, "
    return (
        f" (listed {before}{file.checksum[:_SHOWN]}..., "
        f"now {after}{file.found.checksum[:_SHOWN]}...)"
    )


def _record(report: VerifyReport) -> dict[str, Any]:
    """Return the result as plain values for JSON."""
    scope = report.scope
    return {
        "sample": scope.percent if isinstance(scope, Sample) else None,
        "older": scope.seconds if isinstance(scope, NotSince) else None,
        "evidence": report.evidence,
        "checksum": report.algorithm.value,
        "complete": report.ended is None,
        "listed": report.listed,
        "chosen": report.chosen,
        "checked": report.checked,
        "as_listed": report.checked - len(report.wrong),
        "bytes": report.size,
        **{fault.value: report.count(fault) for fault in FileFault},
        "unlisted": report.unlisted,
        "files": [
            {
                "path": format_path(it.path),
                "fault": it.fault.value,
                "size": it.size,
                report.algorithm.value: it.checksum,
                "found_size": it.found.file.size if it.found else None,
                f"found_{report.algorithm.value}": it.found.checksum if it.found else None,
            }
            for it in report.wrong
        ],
        "unlisted_files": [format_path(path) for path in report.named],
        "damaged": [it._asdict() for it in report.damaged],
        "problem": report.ended and report.ended._asdict(),
        "unsaved": report.unsaved and report.unsaved._asdict(),
        "last": report.last and report.last._asdict(),
    }
