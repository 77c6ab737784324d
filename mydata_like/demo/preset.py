"""What a new embedded server knows: an account, a facility, people, storage boxes."""

import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from mydata_like.demo.approval import STAGING_BOX
from mydata_like.demo.site import DEFAULT_BOX
from mydata_like.demo.store import Store
from mydata_like.demo.times import Times

ACCOUNT = "demo"
FACILITY = "Demo Facility"
MANAGERS = "Demo Facility Managers"
LAB = "lab-a"
PERMITTED = "mydata-default-permissions"


class Person(NamedTuple):
    """A user to be; `permitted` gives the model permissions that an uploader's account needs."""

    username: str
    email: str
    full_name: str = ""
    groups: Iterable[str] = ()
    permitted: bool = False
    superuser: bool = False


def fill(store: Store, times: Times, directory: Path) -> None:
    """Make the preset in an empty database; an old one is left as it is."""
    if store.row("SELECT 1 FROM user"):
        return
    with store.transaction():
        for name in (MANAGERS, LAB, "Other Managers", PERMITTED):
            store.insert("group", name=name)
        _add_boxes(store, directory)
        now = times.now()
        for name, group in ((FACILITY, 1), ("Other Facility", 3)):
            store.insert("facility", name=name, manager_group=group, created=now, modified=now)
        for person in (
            Person(
                ACCOUNT, "demo@example.org", "Demo Account", [MANAGERS, PERMITTED], permitted=True
            ),
            Person("admin", "admin@example.org", "Ada Admin", superuser=True),
            Person("alice", "alice@example.org", "Alice Liddell", [LAB]),
            Person("bob", "bob@example.org", "Bob Roberts", [LAB]),
            Person("visitor", "visitor@example.org", "Vic Visitor"),
        ):
            add_person(store, person)


def add_person(store: Store, person: Person) -> str:
    """Add a user to groups that exist and return their API key."""
    key = secrets.token_hex(20)
    first, _, last = person.full_name.partition(" ")
    number = store.insert(
        "user",
        username=person.username,
        email=person.email,
        first_name=first,
        last_name=last,
        api_key=key,
        superuser=person.superuser,
        permitted=person.permitted,
    )
    for name in person.groups:
        store.change(
            'INSERT INTO membership SELECT ?, id FROM "group" WHERE name = ?', number, name
        )
    return key


def _add_boxes(store: Store, directory: Path) -> None:
    boxes = {
        DEFAULT_BOX: directory / "store",
        STAGING_BOX: directory / "staging",
        f"local box at {directory / 'receiving'}": directory / "receiving",
    }
    for name, location in boxes.items():
        location.mkdir(parents=True, exist_ok=True)
        store.insert("box", name=name, location=str(location))
    for key, value in (
        ("scp_username", "mydata"),
        ("scp_hostname", "127.0.0.1"),
        ("scp_port", "22"),
    ):
        store.insert("box_attribute", box=2, key=key, value=value)
