"""What SSH and a mounted folder have in common: a staging area to which workers send."""

import logging
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from datetime import timedelta
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from mydata_like.app.settings_service import find_state
from mydata_like.app.transports.connection_steps import (
    SIZE,
    UNMEASURED,
    StepResult,
    TestStep,
    differs,
    send_test_file,
    succeeded,
    until_failed,
)
from mydata_like.app.transports.transport_access import TransportAccess, TransportKind
from mydata_like.core.errors import NotApprovedError, Problem, UploaderError
from mydata_like.core.events import Notice
from mydata_like.core.formatting import format_size
from mydata_like.core.model import StagingArea
from mydata_like.core.ports import Emit, Transport
from mydata_like.core.staging_path import aside_path, staged_path
from mydata_like.hostos.clock import SystemClock
from mydata_like.ledger.summaries import UnsentRow, find_staged, find_unsent
from mydata_like.settings.transfer_sections import Transfer
from mydata_like.state.state_files import CLEANUP, VISITED, TimestampStore, VisitedFolders
from mydata_like.transfer.destination import StagingDestination
from mydata_like.transfer.pool import HostMemory, StagingTransport
from mydata_like.transfer.ssh.probe_file import ProbeResult
from mydata_like.transfer.ssh.single_file import RESUMABLE
from mydata_like.transfer.temporary_files import (
    AGE,
    LOCATION,
    Leftover,
    Removed,
    Remover,
    clean_up,
    owner_mark,
    part_name,
)
from mydata_like.transfer.worker_messages import Member

if TYPE_CHECKING:
    from mydata_like.app.transports.transport_access import OpenDestination
    from mydata_like.speedtest.real_files import SpeedTestDestination

logger = logging.getLogger(__name__)

PROBED: Final = ".mydata-like-doctor-"  # folder of a speed test, followed by the uploader's uuid
_PAUSE: Final = timedelta(days=1)
_CLEANED: Final = "cleaned"
_FOLDERS: Final = 1000  # cleaned in one run; the rest is left for the next day


class StagingKind(TransportKind):
    """A kind of transport with channel workers, to a staging area that has to be approved."""

    @abstractmethod
    def find_destinations(
        self, access: TransportAccess, area: StagingArea, transfer: Transfer
    ) -> Sequence[StagingDestination]:
        """Return what the sessions to a staging area lead to."""

    @abstractmethod
    def open_remover(
        self, access: TransportAccess, area: StagingArea
    ) -> AbstractContextManager[Remover | None]:
        """Yield the access to leftovers of interrupted transfers; None if there are none."""

    @abstractmethod
    def test_area(self, access: TransportAccess, area: StagingArea) -> Iterator[TestStep]:
        """Yield the results for a small file that is sent to a staging area."""

    @abstractmethod
    def build_measured(
        self, access: TransportAccess, area: StagingArea
    ) -> "Callable[..., SpeedTestDestination] | None":
        """Return what makes a destination of the speed test from its folder and its transport."""

    def remember(self, access: TransportAccess, area: StagingArea) -> HostMemory | None:
        """Return what earlier runs have found out about the hosts, if that is still true."""

    def follow(self, access: TransportAccess) -> Emit:
        """Return what receives the events of the channels."""
        return access.emit

    def open(self, access: TransportAccess) -> tuple[Transport, str]:
        return self.open_area(access, access.approval.request())

    def open_area(self, access: TransportAccess, area: StagingArea) -> tuple[Transport, str]:
        """Return the transport to an approved staging area, which is cleaned up if that is due."""
        self._clean_up(access, area)
        memory = self.remember(access, area)
        return self.open_pool(access, area, access.settings.transfer, memory), area.box

    def open_pool(
        self,
        access: TransportAccess,
        area: StagingArea,
        transfer: Transfer,
        memory: HostMemory | None = None,
    ) -> StagingTransport:
        """Return the transport to a staging area; no channel is open yet."""
        return StagingTransport(
            area,
            transfer,
            build=lambda area: self.find_destinations(access, area, transfer),
            emit=self.follow(access),
            explain=access.approval.explain,
            renew=access.approval.renew_host_keys,
            owner=access.uuid,
            visiting=_open_visited(access).note,
            memory=memory,
            starter=access.workers,
        )

    def _clean_up(self, access: TransportAccess, area: StagingArea) -> None:
        """Remove old partial files from folders that have not been used for as long; once a day.

        Samples of interrupted probes go from the location as well. Without such folders no
        connection is made. A failure is logged, and the cleanup is retried another day.
        """
        now, visited = SystemClock().now(), _open_visited(access)
        moments = TimestampStore(access.find_file(CLEANUP))
        last = moments.find(_CLEANED)
        due = sorted(visited.find(now - timedelta(seconds=AGE)))
        if not due or (last and timedelta() <= now - last < _PAUSE):
            return
        moments.keep(_CLEANED, now)
        folders = [LOCATION, *(_encode(folder) for folder in islice(due, _FOLDERS))]
        state = find_state(access.settings, access.places)
        wanted = _Wanted(find_unsent(state, RESUMABLE), find_staged(state), access.uuid)
        try:
            with self.open_remover(access, area) as remover:
                removed = Removed(clean=frozenset(folders))
                if remover is not None:
                    removed = clean_up(remover, folders, wanted.has)
        except UploaderError as error:
            logger.info("The staging area was not cleaned up: %s", error)
            return
        visited.forget({folder.decode("utf-8", "surrogateescape") for folder in removed.clean})
        if removed.files:
            access.emit(Notice(problem=_describe_removed(removed)))

    def test(self, access: TransportAccess) -> Iterator[TestStep]:
        approved = access.approval.fetch_approval()
        if approved is None:
            raise NotApprovedError(
                "This uploader has not requested approval yet.",
                hint="Request it with: mydata-like register",
            )
        yield from self.test_approved(access, approved.area)

    def test_approved(self, access: TransportAccess, area: StagingArea) -> Iterator[TestStep]:
        """Yield the steps of the test for an approved staging area."""
        yield succeeded("approval", f"The key is approved for the storage box {area.box}.")
        yield from until_failed("staging", self.test_area(access, area))

    def send_test_file(self, access: TransportAccess, area: StagingArea) -> tuple[str, str]:
        """Send a small file to a staging area; return its name there and its checksum."""
        name = f".mydata-like-check-{access.uuid}"
        state = find_state(access.settings, access.places)
        with closing(self.open_pool(access, area, access.settings.transfer)) as transport:
            return name, send_test_file(transport, name, state, access.observer.cancel)

    def find_measured(self, access: TransportAccess) -> "tuple[OpenDestination | None, str]":
        try:
            approved = access.approval.fetch_approval()
        except NotApprovedError as error:
            return None, f"{UNMEASURED}: {error.message}"
        if approved is None:
            return None, f"{UNMEASURED}: ask for approval first (register)."
        area = approved.area

        build = self.build_measured(access, area)
        if build is None:
            return None, f"{UNMEASURED}: the staging area has no host."
        return partial(build, PROBED + access.uuid, partial(self.open_pool, access, area)), ""


def check_arrived(found: ProbeResult, checksum: str, *, is_blind: bool) -> TestStep:
    """Return the step for a file that was sent; one that is not seen may be there if `is_blind`."""
    sent = f"A file of {format_size(SIZE)} was sent"
    if found.size == SIZE and found.checksum == checksum:
        return succeeded("file", f"{sent} and read back: size and checksum are correct.")
    if found.size == SIZE and not found.checksum:
        return succeeded(
            "file", f"{sent} and has the correct size; this host computes no checksums."
        )
    if found.size is None and is_blind:
        return TestStep(
            "file", StepResult.UNPROVEN, f"{sent}; this host cannot report whether it arrived."
        )
    return differs(
        f"{sent}, but the file on the staging host differs.",
        "Ask the server's administrator to check the storage of the staging area.",
    )


def check_removed(name: str, *, is_gone: bool) -> TestStep:
    """Return the step for the removal of the file."""
    if is_gone:
        return succeeded("cleaning", "The file was removed again.")
    return TestStep(
        "cleaning",
        StepResult.UNPROVEN,
        f"The file {name} stays in the staging area: this host does not allow us to remove files.",
        "The next test replaces it; the server's administrator may remove it.",
    )


class _Wanted:
    """Temporary files that are needed: large ones may be resumed, and replacements completed.

    `staged` are the paths of the latter.
    """

    def __init__(self, unsent: Iterable[UnsentRow], staged: Iterable[bytes], owner: str) -> None:
        self._unsent = set(unsent)
        self._staged = frozenset(staged)
        self._mark = owner_mark(owner)
        self._names: dict[bytes, set[bytes]] = defaultdict(set)  # by folder

    def has(self, folder: bytes, left: Leftover) -> bool:
        if folder not in self._names:
            text = folder.decode("utf-8", "surrogateescape")
            for one in self._unsent:
                name = staged_path("", 0, "", one.name.decode("utf-8", "replace"))
                remote = f"{text}/{name.rpartition('/')[2]}"
                aside = aside_path(remote, one.size, one.modified_ns, self._mark)
                for path in (remote, aside):
                    self._names[folder].add(self._part(path, one))
        return left.name in self._names[folder] or folder + b"/" + left.name in self._staged

    def _part(self, remote: str, one: UnsentRow) -> bytes:
        member = Member(b"", one.size, one.modified_ns, 0, 0, _encode(remote), mark=self._mark)
        return part_name(member)


def _open_visited(access: TransportAccess) -> VisitedFolders:
    """Return the record of the folders that were used in this server's staging area."""
    return VisitedFolders(access.find_file(VISITED), SystemClock())


def _encode(path: str) -> bytes:
    return path.encode("utf-8", "surrogateescape")


def _describe_removed(removed: Removed) -> Problem:
    files = "1 file" if removed.files == 1 else f"{removed.files:,} files"
    return Problem(
        "staging.cleaned",
        f"{files} ({format_size(removed.size)}) of interrupted transfers were removed from the "
        f"staging area because they had not changed for {AGE // 86400} days.",
        "No action is needed: their local files have since been changed, deleted or sent again.",
    )
