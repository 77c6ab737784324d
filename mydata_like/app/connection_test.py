"""The connection test: asks the server, then sends one small file and removes it again."""

from collections.abc import Iterator
from typing import Final

from mydata_like.app.connection import Connection, require_complete
from mydata_like.app.run_request import RunObserver, RunRequest, build_gate, connected
from mydata_like.app.settings_service import find_places, prepare_places
from mydata_like.app.transports.connection_steps import (
    StepResult,
    TestStep,
    succeeded,
    until_failed,
)
from mydata_like.app.transports.transport_access import TransportAccess
from mydata_like.app.transports.transport_kinds import find_kind
from mydata_like.hostos.clock import SystemClock

PERMISSIONS: Final = "mydata-default-permissions"  # the group that the MyData app creates


def run_connection_test(request: RunRequest, observer: RunObserver) -> Iterator[TestStep]:
    """Yield each step as it is tested; steps that depend on a failed one are left out.

    Nothing is created on the server, so registering and verifying are not tested.
    """
    yield from until_failed("server", _test(request, observer))


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
