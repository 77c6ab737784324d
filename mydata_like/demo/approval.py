"""What an administrator does by hand on a real server: approving an uploader's key."""

from collections.abc import Sequence
from typing import NamedTuple

from mydata_like.demo.store import Store
from mydata_like.demo.times import Times

STAGING_BOX = "staging"


class ScpAddress(NamedTuple):
    """Where and as whom an approved uploader reaches the staging area."""

    username: str
    hostname: str
    port: int
    host_keys: Sequence[str] = ()


def set_address(store: Store, address: ScpAddress, box: str = STAGING_BOX) -> None:
    """Write an address into a storage box, where approved uploaders read it."""
    attributes = {
        "scp_username": address.username,
        "scp_hostname": address.hostname,
        "scp_port": str(address.port),
    }
    if address.host_keys:
        attributes["host_keys"] = ",".join(address.host_keys)
    for key, value in attributes.items():
        store.change(
            "INSERT INTO box_attribute (box, key, value)"
            " SELECT id, ?, ? FROM box WHERE name = ?"
            " ON CONFLICT (box, key) DO UPDATE SET value = excluded.value",
            key,
            value,
            box,
        )


def approve(store: Store, times: Times, uuid: str, box: str = STAGING_BOX) -> int:
    """Approve all requests of an uploader and return how many there were."""
    return store.change(
        "UPDATE registration SET approved = 1, approval_time = ?,"
        " box = (SELECT id FROM box WHERE name = ?)"
        " WHERE uploader = (SELECT id FROM uploader WHERE uuid = ?)",
        times.now(),
        box,
        uuid,
    )
