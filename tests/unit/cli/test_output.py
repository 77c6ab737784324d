"""What a user reads of a run, and what a program does."""

import io
import json
import logging
import os
from datetime import UTC, datetime, timedelta
from typing import TextIO, cast

import pytest
from rich.console import Console

from mydata_like.cli.output import (
    NAMED_PROBLEMS,
    DryRunOutput,
    EventLines,
    PlainLines,
    describe_event,
    log_event,
    log_line,
    name_destination,
    reword,
    reword_event,
    summarise,
)
from mydata_like.cli.progress_bars import _Picture
from mydata_like.cli.terminal import GuardedStream
from mydata_like.core.copy_arguments import parse_target
from mydata_like.core.errors import HELD, Problem
from mydata_like.core.events import (
    ChannelChanged,
    CommandDone,
    FileFailed,
    FileReplaced,
    FileSkipped,
    FilesKnown,
    FilesSeen,
    FileWaiting,
    FileWanted,
    FolderFound,
    LimitsChanged,
    Notice,
    RunFinished,
    RunPaused,
    TransferProgressed,
    TransferRetried,
    TransferStarted,
)
from mydata_like.engine.progress import RunProgress
from mydata_like.settings.schema import Settings
from tests.fakes.clock import FakeClock

NOW = datetime(2026, 1, 5, tzinfo=UTC)
CUT = Problem("link.lost", "The line broke.", "Check the cable.")


def finished(**sums):
    numbers = {"found": 3, "verified": 3, "waiting": 0, "skipped": 0, "failed": 0}
    rest = {"sent": 3, "bytes": 3_000_000, "seconds": 2.0, "problem": None}
    return RunFinished(run="1", at=NOW, **(numbers | rest | sums))


def failed(name: bytes = b"a.txt"):
    return FileFailed(path=name, size=1, problem=CUT)


def test_the_log_has_one_complete_line_for_an_event():
    broken = 'file_failed path="a\\nb c" size=1 problem=link.lost (The line broke.)'

    assert log_line(failed(b"a\nb c")) == broken
    assert log_line(LimitsChanged(channels=2, reason="")) == "limits_changed channels=2"


def test_an_event_is_one_line_of_json_whatever_the_name():
    stream = io.StringIO()

    EventLines(stream).show(failed(b'a\nb\xff"\xc3\xa9.txt'))

    (line,) = stream.getvalue().splitlines()
    assert json.loads(line) == {
        "event": "file_failed",
        "path": 'a\\nb\\xff"é.txt',
        "size": 1,
        "problem": CUT._asdict(),
        "modified_ns": 0,
    }


def test_brief_events_leave_out_single_files():
    stream = io.StringIO()
    lines = EventLines(stream, brief=True)
    lines.show(failed())
    lines.show(RunPaused(problem=CUT))

    assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["run_paused"]


def test_brief_events_of_a_dry_run_name_the_first_files_of_each_kind_that_stay():
    stream = io.StringIO()
    lines = EventLines(stream, brief=True, dry_run=True)
    for number in range(NAMED_PROBLEMS + 5):
        lines.show(failed(b"%d" % number))
        lines.show(FileWanted(path=b"%d" % number, size=1))
    held = Problem(HELD, "It is held.")
    for problem in (CUT, held):
        for _ in range(NAMED_PROBLEMS + 1):
            lines.show(FileWaiting(path=b"w", size=1, problem=problem))
    lines.show(FileWanted(path=b"r", size=1, changed=True))

    names = [json.loads(line)["event"] for line in stream.getvalue().splitlines()]
    assert names == [
        *["file_failed"] * NAMED_PROBLEMS,
        *["file_waiting"] * NAMED_PROBLEMS * 2,
        "file_wanted",
    ]


def test_a_reader_that_has_gone_does_not_end_the_run():
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        lines = EventLines(cast(TextIO, GuardedStream(stream)))
        lines.show(failed())
        lines.show(failed())


def test_all_is_safe_only_when_all_is_verified():
    assert summarise(finished())[0] == "All 3 files are safe on the server."
    assert summarise(finished(found=4, skipped=1))[0] == "All 3 files are safe on the server."
    assert "safe" not in " ".join(summarise(finished(found=4, waiting=1)))
    assert "safe" not in " ".join(summarise(finished(problem=CUT)))
    behind = summarise(finished(found=4, skipped=1, left_behind=1))
    assert "safe" not in " ".join(behind)
    assert behind[0].startswith("1 file or folder was left out and is not on the server")


def test_a_single_file_is_no_plural():
    lines = summarise(finished(found=1, verified=1, sent=1, replaced=1))

    assert lines[0] == "1 file is safe on the server."
    assert not [line for line in lines if "1 files" in line]


def test_questions_of_the_window_are_no_news(caplog):
    caplog.set_level(logging.INFO)
    for command in ("list_next", "pause"):
        log_event(CommandDone(id=1, command=command))

    assert [record.getMessage() for record in caplog.records] == ["command_done id=1 command=pause"]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (1, "1 file is in no dataset and stays here."),
        (2, "2 files are in no dataset and stay here."),
    ],
)
def test_files_in_no_dataset_are_counted_below_safe_ones(files, said):
    lines = summarise(finished(found=3 + files, skipped=files, outside=files))

    assert lines[:2] == ["All 3 files are safe on the server.", said]


def test_nothing_is_called_safe_of_a_run_that_wanted_nothing():
    said = summarise(finished(found=2, verified=0, skipped=2))

    assert said[0] == "No files were found that need to be sent."
    assert "safe" not in " ".join(said)


def test_a_run_over_a_part_says_only_that_its_own_files_are_safe():
    said = summarise(finished(), partial=True)

    assert said[0] == "All 3 files of this run are safe on the server."


def test_the_sums_of_a_run_add_up_before_the_readers_eyes():
    lines = summarise(finished(found=10, verified=3, waiting=4, skipped=2, failed=1))

    assert "10 found = 3 verified + 4 waiting + 2 skipped + 1 failed" in lines
    assert lines[-1] == "3 files, 3.0 MB sent in 2.0 s (1.5 MB/s)"


def test_what_did_not_have_to_be_sent_is_no_speed_of_a_run():
    lines = summarise(finished(omitted=2_000_000))

    rate = "3 files, 1.0 MB sent in 2.0 s (500.0 kB/s)"
    assert lines[-1] == f"{rate}; a further 2.0 MB were holes, or left by earlier runs"


def test_a_run_that_was_stopped_says_what_it_has_sent_of_unfinished_files():
    none = summarise(finished(sent=0, bytes=0, unfinished=102_000_000, problem=CUT))
    some = summarise(finished(unfinished=5_000_000, problem=CUT))

    assert none[-1] == "102.0 MB of files that are not complete were sent; the run took 2.0 s."
    assert some[-1] == "A further 5.0 MB were sent of files that are not complete."


@pytest.mark.parametrize(("limit", "said"), [("API", "requests."), ("", "MB/s)")])
def test_the_sums_end_with_the_limit_where_it_is_known(limit, said):
    assert summarise(finished(limit=limit))[-1].endswith(said)
    assert "limit" not in summarise(finished(limit=limit, sent=0))[-1]


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (failed(b"a\x1b[31m.txt"), "Failed: a\\x1b[31m.txt: The line broke. Check the cable."),
        (Notice(problem=CUT), "Note: The line broke. Check the cable."),
        (RunPaused(problem=CUT), "Paused: The line broke. Check the cable."),
        (
            ChannelChanged(channel=2, state="lost", detail="The host is gone."),
            "Channel 2 was lost: The host is gone.",
        ),
        (
            LimitsChanged(channels=2, bandwidth=5e6, reason="limits.bandwidth"),
            "Limits: 2 channels, 5.0 MB/s (limits.bandwidth).",
        ),
        (
            LimitsChanged(channels=1, reason="requested by the user"),
            "Limits: 1 channel, unlimited speed (requested by the user).",
        ),
    ],
    ids=["failed", "notice", "paused", "lost", "limited", "unlimited"],
)
def test_warnings_for_the_user_are_whole_sentences(event, words):
    assert list(describe_event(event)) == [words]


def test_a_thousand_failures_do_not_fill_the_screen():
    lines = []
    report = PlainLines(lines.append)

    for number in range(1000):
        report.show(failed(b"%d" % number))

    assert len(lines) == NAMED_PROBLEMS + 1
    assert "log file" in lines[-1]


def test_a_dry_run_reports_folder_by_folder_what_is_there():
    preview, progress = DryRunOutput(), RunProgress(FakeClock())
    for event in (
        FolderFound(path=b"jo/Set 1", dataset="Set 1", title=None, owner="jo"),
        FilesSeen(folder=b"jo/Set 1", files=3, bytes=30),
        FilesKnown(folder=b"jo/Set 1", files=2, bytes=20),
        FileWanted(path=b"jo/Set 1/a", size=10),
    ):
        preview.show(event)
        progress.add(event)

    folder, sums = preview.lines(progress.totals, takes_tree=False)

    assert folder == (
        "jo/Set 1: dataset Set 1, experiment named after jo: 3 found, 2 on the server"
    )
    assert sums.startswith("1 file, 10 bytes would be sent; 2 on the server")


def look(*events):
    preview, progress = DryRunOutput(), RunProgress(FakeClock())
    for event in events:
        preview.show(event)
        progress.add(event)
    return preview.lines(progress.totals, takes_tree=False)


def test_a_dry_run_names_what_waits_and_what_is_left_out():
    lines = look(
        FilesSeen(folder=b"jo/Set 1", files=3, bytes=30),
        FilesKnown(folder=b"jo/Set 1", files=1, bytes=10),
        FileWaiting(path=b"jo/Set 1/w", size=10, problem=CUT),
        FileSkipped(path=b"jo/Set 1/s", size=10, problem=CUT),
    )

    assert lines == [
        "Nothing would be sent, and 2 files are not verified; 1 on the server, 1 waiting, "
        "1 left out, 0 unreadable.",
        "Waiting: jo/Set 1/w: The line broke. Check the cable.",
        "Left out: jo/Set 1/s: The line broke. Check the cable.",
    ]


def test_a_dry_run_says_that_all_is_there_only_where_all_is():
    seen = FilesSeen(folder=b"jo/Set 1", files=2, bytes=20)
    (there,) = look(seen, FilesKnown(folder=b"jo/Set 1", files=2, bytes=20))
    assert there.startswith("Nothing would be sent: all files are on the server;")
    (nothing,) = look()
    assert nothing.startswith("No files were found;")


def test_of_very_many_files_a_dry_run_names_the_first():
    waiting = [FileWaiting(path=b"%d" % n, size=1, problem=CUT) for n in range(25)]
    lines = look(FilesSeen(folder=b"jo", files=25, bytes=25), *waiting)

    assert len(lines) == 1 + NAMED_PROBLEMS + 1
    assert lines[-1] == "Waiting: 5 more."


def test_the_picture_shows_every_channel_and_the_sums():
    progress = RunProgress(FakeClock())
    for event in (
        FilesSeen(folder=b"jo", files=2, bytes=200),
        FileWanted(path=b"jo/large.raw", size=200),
        TransferStarted(transfer=1, channel=1, name=b"jo/large.raw", files=1, bytes=200),
        TransferProgressed(transfer=1, channel=1, bytes=50),
        TransferRetried(transfer=1, channel=1, problem=CUT, delay=1.0),
    ):
        progress.add(event)
    stream = io.StringIO()

    Console(file=stream, width=120).print(_Picture(progress))

    text = stream.getvalue()
    assert "channel 1" in text
    assert "large.raw" in text
    assert "retrying soon: The line broke." in text
    assert "2 found = 0 verified + 0 waiting + 0 skipped + 0 failed + 2 open" in text


VERIFIED = "2026-11-03T23:59:00"  # without a time zone, as MyTardis has it


def replaced(path=b"a", until=datetime(2026, 12, 3, 12, tzinfo=UTC)):
    return FileReplaced(
        path=path, size=0, size_before=1_200_000, verified_at=VERIFIED, kept_until=until
    )


def test_replaced_content_is_named_with_what_is_kept_of_it():
    lines = []
    report = PlainLines(lines.append)
    report.show(replaced())
    report.show(replaced(until=None))

    assert lines == [
        "Replaced: a: the earlier content was 1.2 MB, verified on 3 November 2026; "
        "it is kept until "
        "3 December 2026.\n",
        "Replaced: a: the earlier content was 1.2 MB, verified on 3 November 2026; "
        "it is not kept.\n",
    ]
    assert any("2 files replaced other content" in line for line in summarise(finished(replaced=2)))


def test_a_thousand_replaced_files_do_not_fill_the_screen():
    lines = []
    report = PlainLines(lines.append)
    for number in range(1000):
        report.show(replaced(b"%d" % number))
    assert len(lines) == NAMED_PROBLEMS + 1
    assert lines[-1] == "More files were replaced; the log file names them all.\n"


def test_a_dry_run_names_the_content_that_would_be_replaced():
    wanted = FileWanted(
        path=b"a", size=0, changed=True, size_before=1_200_000, verified_at=VERIFIED
    )
    assert "Would be replaced: a: the server has 1.2 MB, verified on 3 November 2026." in look(
        wanted
    )
    many = look(*[wanted] * (NAMED_PROBLEMS + 5))
    assert "Would be replaced: 5 more." in many


@pytest.mark.parametrize(
    ("days", "said"), [(0, "today"), (1, "1 day ago"), (4, "4 days ago"), (1200, "1,200 days ago")]
)
def test_what_is_safe_is_said_with_the_day_of_an_earlier_comparison(days, said):
    compared = NOW - timedelta(days=days)
    (first, *_) = summarise(finished(compared=compared))
    assert first == f"All 3 files are safe on the server (compared with the server {said})."
    assert summarise(finished())[0] == "All 3 files are safe on the server."


@pytest.mark.parametrize(
    ("address", "place"), [("ada@store:/data", "on store"), ("/mnt/share", "in /mnt/share")]
)
def test_sentences_name_a_destination_without_a_server(address, place):
    lines = [
        "Check the network; the staging host may be down.",
        "The staging area is full. The server's administrator can free space.",
        "All 3 files are safe on the server.",
        "Failed: /on the server/a of the staging area/b: The staging host ended scp.",
    ]

    target = parse_target(address, windows=False, home=b"")
    said = list(reword(lines, name_destination(target, address)))

    assert said == [
        "Check the network; the host may be down.",
        "The destination is full. The destination's administrator can free space.",
        f"All 3 files are safe {place}.",
        "Failed: /on the server/a of the staging area/b: The host ended scp.",
    ]
    assert list(reword(lines, Settings())) == lines


def test_problems_in_events_name_the_destination_too():
    full = Problem("staging.full", "The staging area has no space for a.", "Ask its host.")
    failed = FileFailed(path=b"a", size=1, problem=full)
    place = name_destination(parse_target("/mnt/x", windows=False, home=b""), "/mnt/x")

    assert reword_event(failed, place).problem.message == "The destination has no space for a."
    assert reword_event(failed, Settings()) == failed
    begun = FilesSeen(folder=b"d", files=1, bytes=1)
    assert reword_event(begun, place) is begun


def test_a_run_whose_files_were_contradicted_since_does_not_call_them_safe():
    assert not [
        line for line in summarise(finished(), partial=True, doubtful=True) if "safe" in line
    ]
