"""What earlier checks of a destination have found, in files beside its manifest.

`checks/UPLOADER.json` has two numbers for each segment of the manifest: when all files of which it
has the newest line were last read, and how many of them were not as listed. It is written again
while a check goes on, so that the next one can omit the segments that were done before an
interruption. A segment with a file that was not as listed counts as never checked, until all its
files are as listed again. A sample is remembered only where it found such a file. Each uploader
writes its own file; of what several have noted about a segment, the newest counts.

`last-verify.json` is the result of the last check, by whomever, and `last-restore-test.json` that
of the last restore test, with what the next one has to know.
"""

import json
import logging
from collections.abc import Mapping
from typing import Final, NamedTuple

from mydata_like.catalogues.manifest.segments import FORMAT
from mydata_like.core.destination_files import OWN_FOLDER, DestinationFiles
from mydata_like.core.parsing import parse_json

logger = logging.getLogger(__name__)

CHECKS: Final = OWN_FOLDER + b"/checks/"
LAST: Final = OWN_FOLDER + b"/last-verify.json"
LAST_RESTORE: Final = OWN_FOLDER + b"/last-restore-test.json"
NO_TIME: Final = 1 << 33  # seconds since 1970, in the year 2242


class SegmentRecord(NamedTuple):
    """When a segment was checked, in seconds since 1970, and its files that were not as listed."""

    at: int
    wrong: int


class VerifyRecords:
    """The checks of all segments of a destination; `uploader` names the file of ours."""

    def __init__(self, uploader: str) -> None:
        self._path = CHECKS + uploader.encode() + b".json"
        self._own: dict[str, SegmentRecord] = {}
        self._newest: dict[str, SegmentRecord] = {}

    def load(self, files: DestinationFiles) -> None:
        """Read what all uploaders have noted; a file that is damaged counts as missing."""
        for name in files.list_own(CHECKS.rstrip(b"/")):
            found = _parse_records(files.read(CHECKS + name))
            if CHECKS + name == self._path:
                self._own = found
            for segment, check in found.items():
                known = self._newest.get(segment)
                if known is None or known.at <= check.at:
                    self._newest[segment] = check

    def find_last(self, segment: str, proven: int) -> int:
        """Return when the files of a segment were last as listed; `proven` if never checked.

        It is 0 if the last check found a file that was not.
        """
        check = self._newest.get(segment)
        if check is None:
            return proven
        return 0 if check.wrong else max(check.at, proven)

    def note(self, segment: str, check: SegmentRecord) -> None:
        """Remember a check of a segment."""
        self._own[segment] = self._newest[segment] = check

    def save(self, files: DestinationFiles) -> None:
        """Write our file again."""
        record = {"format": FORMAT, "segments": self._own}
        files.write(self._path, json.dumps(record).encode() + b"\n", replace=True)


def _parse_records(content: bytes | None) -> dict[str, SegmentRecord]:
    try:
        record = parse_json(content or b"")
        segments = record["segments"].items() if record["format"] == FORMAT else ()
        return {str(name): SegmentRecord(int(at), int(wrong)) for name, (at, wrong) in segments}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        logger.warning("What earlier checks have found cannot be read: %s", error)
        return {}


class LastVerify(NamedTuple):
    """The result of a check of a destination.

    `at` is its end in seconds since 1970, `by` the user and computer. `scope` is `all`, `sample` or
    `older`. `listed` files are in the manifest, of which `chosen` were to be checked, and `checked`
    ones were. `unlisted` is None if it is not known. The files were `read`, unless they are objects
    of which the service only told its ETags.
    """

    at: int
    by: str
    scope: str
    complete: bool
    listed: int
    chosen: int
    checked: int
    missing: int
    changed: int
    unreadable: int
    unlisted: int | None
    damaged: int
    read: bool = True

    @property
    def is_good(self) -> bool:
        """Whether all files that were checked are as listed, and the list is whole."""
        return not (self.missing or self.changed or self.unreadable or self.damaged)

    def format(self) -> bytes:
        """Return it as the content of the file."""
        return json.dumps({"format": FORMAT, **self._asdict()}).encode() + b"\n"


def parse_last(content: bytes | None) -> LastVerify | None:
    """Return the result in the file's content; None if it is missing, damaged or of a newer one."""
    if content is None:
        return None
    try:
        record = parse_json(content)
        if record["format"] != FORMAT or not 0 <= int(record["at"]) < NO_TIME:
            return None
        unlisted = record["unlisted"]
        return LastVerify(
            int(record["at"]),
            str(record["by"]),
            str(record["scope"]),
            record["complete"] is True,
            int(record["listed"]),
            int(record["chosen"]),
            int(record["checked"]),
            int(record["missing"]),
            int(record["changed"]),
            int(record["unreadable"]),
            None if unlisted is None else int(unlisted),
            int(record["damaged"]),
            record.get("read", True) is True,
        )
    except (ValueError, TypeError, KeyError) as error:
        logger.warning("The result of the last check cannot be read: %s", error)
        return None


class LastRestore(NamedTuple):
    """The result of a restore test, in which a sample of the files was fetched and compared.

    `at` is its end in seconds since 1970, `by` the user and computer. `asked` is the size of the
    sample as it was chosen. Of the `listed` files, `chosen` were to be fetched, and `restored` ones
    came back as listed, of which `compared` are also here, unchanged. `wrong` has the numbers of
    the others by what is wrong with them.
    """

    at: int
    by: str
    complete: bool
    asked: int
    listed: int
    chosen: int
    restored: int
    compared: int
    wrong: Mapping[str, int]


class RestoreRecord(NamedTuple):
    """The last restore test, and what the next one has to know.

    `first` are the files, in base64, that it fetches first: those that did not come back as listed,
    in this test or an earlier one, with what is wrong, and those that were left, with "". `tested`
    has the times of recent tests of files, by digests of their paths.
    """

    format: int
    result: LastRestore
    first: Mapping[str, str]
    tested: Mapping[str, int]
