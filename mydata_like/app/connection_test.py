"""The connection test: tries the destination of the settings, and removes what it wrote there."""

from collections.abc import Iterator
from contextlib import closing
from typing import Final

from mydata_like.app.bucket_place import BucketPlace
from mydata_like.app.connection import Connection, require_complete
from mydata_like.app.known_copies import KNOWN_ID
from mydata_like.app.ledgers import reading
from mydata_like.app.plain_destination import HostPlace
from mydata_like.app.run_connection import connected
from mydata_like.app.run_request import RunObserver, RunRequest, build_gate
from mydata_like.app.settings_destination import open_place, refuse_overlap
from mydata_like.app.settings_service import find_places, prepare_places
from mydata_like.app.transports.connection_steps import (
    StepResult,
    TestStep,
    succeeded,
    until_failed,
)
from mydata_like.app.transports.transport_access import TransportAccess
from mydata_like.app.transports.transport_kinds import find_kind
from mydata_like.catalogues.manifest.manifest_catalogue import identify
from mydata_like.core.destination_files import SERVICE
from mydata_like.core.errors import StagingError
from mydata_like.core.formatting import format_path, format_size
from mydata_like.hostos.clock import SystemClock
from mydata_like.ssh.login import Confirm, Prompts
from mydata_like.transfer.destination_problems import ABSENT

PERMISSIONS: Final = "mydata-default-permissions"  # the group that the MyData app creates
READ_BACK: Final = (
    "The host computes no checksums: each file is read back, so each byte travels twice."
)
_EVIDENCE: Final = {
    "host": "The host computes the checksum of each file that arrived.",
    "read-back": "Each file that arrived is read again from the storage.",
    "read-back-cached": "Each file that arrived is read again, possibly from memory.",
    SERVICE: "The service computes the checksum of each object that arrived.",
}


def run_connection_test(
    request: RunRequest, observer: RunObserver, confirm: Confirm | None = None
) -> Iterator[TestStep]:
    """Yield each step as it is tested; steps that depend on a failed one are left out.

    Nothing is created on a MyTardis server, so registering and verifying are not tested. `confirm`
    asks about an unknown host key of a destination without a server.
    """
    if request.settings.destination.takes_tree:
        yield from until_failed("destination", _test_plain(request, confirm))
    else:
        yield from until_failed("server", _test(request, observer))


def _test_plain(request: RunRequest, confirm: Confirm | None) -> Iterator[TestStep]:
    """Test a host or a folder; only a small file is written, and removed at once."""
    settings, config = request.settings, request.config
    prepare_places(settings, find_places(config))
    refuse_overlap(settings)
    prompts = Prompts(confirm) if confirm else None
    place = open_place(settings, config, prompts, probe=True)
    for note in place.notes:
        yield TestStep("host", StepResult.UNPROVEN, note)
    shown = place.name if isinstance(place, BucketPlace) else format_path(place.path)
    if isinstance(place, HostPlace):
        user, host = place.endpoint.username, place.endpoint.host
        yield succeeded("login", f"{user} can log in to {host}, port {place.endpoint.port}.")
    with reading(settings, config) as ledger:
        known = ledger.find_meta(KNOWN_ID) if ledger else None
    with closing(place.open_files()) as files:
        try:
            files.open(create=False)
        except StagingError as error:
            if known or error.problem_code != ABSENT:
                raise
            why = f"The folder {shown} does not exist yet: the first run makes it."
            yield TestStep("folder", StepResult.UNPROVEN, why, error.hint, ABSENT)
            return
        yield succeeded("folder", f"Files can be written to {shown}.")
        if identify(files, known or "", create=False).id:
            used = "earlier runs sent to it" if known else "other computers or folders send to it"
            yield succeeded("marker", f"It is a destination of this program: {used}.")
        yield succeeded("evidence", READ_BACK if place.reads_back else _EVIDENCE[files.evidence])
    free = None if isinstance(place, BucketPlace) else place.find_free()
    if free is not None:
        yield succeeded("space", f"{format_size(free)} are free.")


def _test(request: RunRequest, observer: RunObserver) -> Iterator[TestStep]:
    require_complete(request.settings, request.config)
    prepare_places(request.settings, find_places(request.config))
    gate = build_gate(request, observer, SystemClock())
    with connected(request, observer, gate) as connection:
        yield from _describe_connection(connection)
        access = TransportAccess(request, observer, connection)
        yield from until_failed("approval", find_kind(request.settings).test(access))


def _describe_connection(connection: Connection) -> Iterator[TestStep]:
    account, facility, instrument = connection.account, connection.facility, connection.instrument
    yield succeeded("server", f"{connection.client.wire.host} is a MyTardis server.")
    yield succeeded(
        "account", f"{account.username} can log in and manages the facility {facility.name}."
    )
    if instrument.id:
        yield succeeded("instrument", f"The facility has the instrument {instrument.name}.")
    else:
        why = f"The facility has no instrument {instrument.name} yet; registering creates it."
        yield TestStep("instrument", StepResult.UNPROVEN, why)
    if PERMISSIONS in connection.server.fetch_groups():
        yield succeeded("rights", f"The account belongs to the group {PERMISSIONS}.")
    else:
        yield TestStep(
            "rights",
            StepResult.UNPROVEN,
            f"The account is not in the group {PERMISSIONS}, but may have the same permissions.",
            "If the first run is refused, ask the server's administrator to add the account.",
        )
