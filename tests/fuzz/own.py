"""Fuzz targets for our own programs and files: events, worker messages, rows of the ledger."""

import io
import pickle
from typing import Final

from mydata_like.catalogues.mytardis.api import is_from_the_application
from mydata_like.catalogues.mytardis.http import HttpResponse
from mydata_like.core.errors import UploaderError
from mydata_like.gui.engine_process import parse_line
from mydata_like.gui.speed_test.speedtest_process import read_reports
from mydata_like.gui.tray.single_instance import parse_request
from mydata_like.ledger.sql import moment, parse_archive, parse_entry, parse_run
from mydata_like.settings.mydata_cfg import translate
from mydata_like.transfer.worker_messages import ChannelReply, MemberResult, Pipe, TaskResult
from tests.fuzz.target import MD5, TIME, Target, load_values, plain, to_json

SPEED_TEST: Final = {
    "at": TIME,
    "quick": True,
    "findings": {"here": {"busy": 0.1}, "stages": [], "compared": [], "unknown": []},
    "verdict": {"workloads": [], "advice": []},
    "proof": None,
}
MESSAGE: Final = pickle.dumps(
    ChannelReply(1, TaskResult((MemberResult(0, MD5),))), pickle.HIGHEST_PROTOCOL
)
RUN: Final = ["run-1", TIME, TIME, '{"found": 1}']
MYDATA: Final = {
    "username": "me",
    "max_upload_threads": "7",
    "timer_minutes": "15",
    "scheduled_date": "2016-01-01",
    "scheduled_time": "10:00:00",
    "folder_structure": "Username / Dataset",
    "ignore_interval_number": "3",
    "ignore_interval_unit": "months",
}


def _receive(data: bytes) -> object:
    """Receive a message truncated to the length of the input; only our processes write there."""
    return Pipe(io.BytesIO(MESSAGE[: len(data)]), io.BytesIO()).receive()


def _read_rows(data: bytes) -> object:
    """Parse a list as each kind of row, with the types of values that SQLite can return."""
    values = load_values(data)
    kinds = str | int | float | None
    row = tuple(it for it in values if isinstance(it, kinds)) if isinstance(values, list) else ()
    if row:
        moment(row[0])
    if len(row) == len(RUN):
        parse_run(row)
    if len(row) > 4:
        parse_entry(row)
        parse_archive(row)
    return True


def _read_reports(data: bytes) -> object:
    record = load_values(data)
    return read_reports([record]) if isinstance(record, dict) else True


def _translate(data: bytes) -> object:
    given = load_values(data)
    if not isinstance(given, dict):
        return True
    return translate({key: text for key, text in given.items() if isinstance(text, str)})


TARGETS: Final = (
    Target(
        name="worker messages",
        samples=(MESSAGE,),
        open=plain(_receive),
        declared=(EOFError,),
    ),
    Target(
        name="engine events",
        samples=(
            to_json(
                {"event": "notice", "at": TIME, "problem": {"code": "a.b", "message": "It is odd."}}
            ),
        ),
        open=plain(parse_line),
        has_json=True,
    ),
    Target(
        name="calls of programs",
        samples=(to_json({"show": True, "paths": ["/a"], "token": "x"}),),
        open=plain(parse_request),
        has_json=True,
    ),
    Target(
        name="speed test records",
        samples=(to_json(SPEED_TEST),),
        open=plain(_read_reports),
        has_json=True,
    ),
    Target(
        name="registration replies",
        samples=(to_json({"error_message": "IntegrityError", "traceback": ""}),),
        open=plain(lambda data: is_from_the_application(HttpResponse(500, {}, data))),
        has_json=True,
    ),
    Target(
        name="ledger rows",
        samples=(to_json(RUN), to_json([1, "a.tar", 2, 3, "verified", MD5, "r", None])),
        open=plain(_read_rows),
        has_json=True,
    ),
    Target(
        name="values of MyData",
        samples=(to_json(MYDATA),),
        open=plain(_translate),
        declared=(UploaderError,),
        has_json=True,
    ),
)
