"""This installation's record and its request for approval."""

import json
from dataclasses import replace
from datetime import date

import pytest

from mydata_like.catalogues.mytardis.uploader import (
    Installation,
    RegisteredKey,
    Uploaders,
)
from mydata_like.core.errors import AccessDeniedError, NotApprovedError
from mydata_like.core.machine import MachineRecord
from mydata_like.core.model import InstrumentRecord
from tests.fakes.web import page, reply, reset

UPLOADER = "mydata_uploader/"
REQUEST = "mydata_uploaderregistrationrequest/"
CHANGED = "2026-11-21T13:34:15.610814"
ROW = {
    "id": 5,
    "name": "Scope",
    "settings": [{"key": "locked", "value": "True"}],
    "settings_updated": CHANGED,
}
BOX = {
    "name": "staging",
    "options": [{"key": "location", "value": "/srv/staging"}],
    "attributes": [
        {"key": "scp_username", "value": "mydata"},
        {"key": "scp_hostname", "value": "staging.example.org"},
    ],
}
WAITING = {
    "id": 8,
    "approved": False,
    "approver_comments": "ask\x1b Ann",
    "requester_key_fingerprint": "aa:bb",
    "approved_storage_box": None,
}
APPROVED = {**WAITING, "approved": True, "approved_storage_box": BOX}
INSTALLATION = Installation(
    uuid="0b6",
    name="Scope",
    contact_name="Ann",
    contact_email="ann@example.org",
    data_path="D:\\" + "x" * 300,
    account="facility",
    machine=MachineRecord(processor="p" * 100, os_release="r" * 100),
)
SCOPE = InstrumentRecord(3, "Scope")
KEY = RegisteredKey("ssh-ed25519 AAAA", ("SHA256:abc", "aa:bb"))


@pytest.fixture
def uploaders(api_client):
    return Uploaders(api_client)


def test_an_unknown_installation_is_reported_to_the_server_once(web, uploaders):
    web.on("GET", UPLOADER, page(), page(), page(ROW))
    web.on("POST", UPLOADER, reset)

    assert uploaders.ensure_uploader(INSTALLATION, SCOPE).id == 5

    assert web.count("POST") == 1


def test_a_known_installation_is_brought_up_to_date(web, uploaders):
    web.on("GET", UPLOADER, page(ROW))
    web.on("PUT", "mydata_uploader/5/", reply(200, ROW))

    record = uploaders.ensure_uploader(INSTALLATION, SCOPE)

    assert (record.settings, record.settings_updated) == ({"locked": "True"}, CHANGED)
    assert web.count("PUT") == 1


def test_an_installation_that_is_known_to_be_up_to_date_is_only_looked_up(web, uploaders):
    web.on("GET", UPLOADER, page(ROW))

    assert uploaders.ensure_uploader(INSTALLATION, SCOPE, update=False).id == 5

    assert web.count("PUT") == 0


def test_an_installation_that_was_just_looked_up_is_not_looked_up_again(web, uploaders):
    web.on("GET", UPLOADER, page(ROW), page())

    looked = uploaders.look_up(INSTALLATION.uuid)

    assert uploaders.ensure_uploader(INSTALLATION, SCOPE, update=False) == looked
    assert web.count("GET") == 1


def test_a_look_serves_only_once(web, uploaders):
    web.on("GET", UPLOADER, page(ROW))
    uploaders.look_up(INSTALLATION.uuid)
    uploaders.ensure_uploader(INSTALLATION, SCOPE, update=False)

    uploaders.ensure_uploader(INSTALLATION, SCOPE, update=False)

    assert web.count("GET") == 2


def test_the_data_for_the_server_has_a_digest_that_changes_with_it(uploaders):
    moved = replace(INSTALLATION, data_path="E:\\")
    beyond = replace(INSTALLATION, data_path=INSTALLATION.data_path + "more than it keeps")

    digests = [uploaders.digest(it, SCOPE) for it in (INSTALLATION, moved, beyond)]

    assert digests[0] != digests[1]
    assert digests[0] == digests[2]
    assert digests[0] != uploaders.digest(INSTALLATION, InstrumentRecord(4, "Scope"))


@pytest.mark.parametrize(
    ("told", "day"),
    [("2027-03-01", date(2027, 3, 1)), ("2027-03-01T00:00:00", date(2027, 3, 1)), ("soon", None)],
)
def test_the_last_day_of_an_approval_is_read(web, uploaders, told, day):
    web.on("GET", REQUEST, page(APPROVED | {"approval_expiry": told}))

    assert uploaders.fetch_approval("0b6", KEY.fingerprints).expires == day


def test_facts_are_shortened_to_what_the_server_keeps(web, uploaders):
    web.on("GET", UPLOADER, page())
    web.on("POST", UPLOADER, reply(201, ROW))

    uploaders.ensure_uploader(INSTALLATION, SCOPE)

    told = json.loads(web.asked[-1].body)
    lengths = {name: len(told[name]) for name in ("data_path", "processor", "os_release")}
    assert lengths == {"data_path": 256, "processor": 64, "os_release": 32}
    assert told["instruments"] == ["/api/v1/instrument/3/"]
    assert told["user_agent_name"] == "mydata-like"


def test_approval_is_asked_for_once(web, uploaders):
    web.on("GET", UPLOADER, page(ROW))
    web.on("PUT", "mydata_uploader/5/", reply(200, ROW))
    web.on("GET", REQUEST, page(), page(WAITING))
    web.on("POST", REQUEST, reply(201, WAITING))
    record = uploaders.ensure_uploader(INSTALLATION, SCOPE)

    uploaders.request_approval(INSTALLATION, record, KEY)
    uploaders.request_approval(INSTALLATION, record, KEY)

    assert web.count("POST") == 1


def test_an_approved_key_is_found_under_any_form_of_its_fingerprint(web, uploaders):
    web.on("GET", REQUEST, page(WAITING, APPROVED | {"id": 9}))

    area, expires = uploaders.fetch_approval("0b6", KEY.fingerprints)

    assert expires is None
    assert (area.hosts, area.port, area.location) == (("staging.example.org",), 22, "/srv/staging")


def test_a_key_that_waits_is_named_with_what_the_administrator_wrote(web, uploaders):
    web.on("GET", REQUEST, page(WAITING))

    with pytest.raises(NotApprovedError, match="aa:bb") as caught:
        uploaders.fetch_approval("0b6", KEY.fingerprints)

    assert "ask\\x1b Ann" in caught.value.message


def test_a_key_that_has_not_asked_has_no_staging_area(web, uploaders):
    web.on("GET", REQUEST, page(APPROVED | {"requester_key_fingerprint": "SHA256:other"}))

    assert uploaders.fetch_approval("0b6", KEY.fingerprints) is None


def test_a_missing_request_proves_nothing_to_a_stranger(web, uploaders):
    web.on("GET", REQUEST, page())
    web.account = page()

    with pytest.raises(AccessDeniedError):
        uploaders.fetch_approval("0b6", KEY.fingerprints)
