"""What the first start asks a server, with a real one."""

import pytest

from mydata_like.app.onboarding import (
    Credentials,
    ServerCheckResult,
    check_account,
    check_address,
    find_setup_state,
    list_facilities,
    list_instruments,
    preview_layout,
    show_key,
)
from mydata_like.app.settings_service import open_secrets, save_settings, store_api_key
from mydata_like.core.errors import AccessDeniedError, Cancelled, UploaderError
from mydata_like.core.model import Layout
from mydata_like.demo.demo_server import EmbeddedServer
from mydata_like.demo.middleware import HTML_PAGE, Fault, Reply
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.settings.schema import Data, Server, Settings
from tests.embedded import Api
from tests.privileges import needs_undecodable_names

TEXT = {"Content-Type": "text/plain"}


@pytest.fixture
def server(tmp_path):
    with EmbeddedServer(tmp_path / "server") as server:
        yield server


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("MYDATA_LIKE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def login(server, key=None):
    return Credentials(Server(url=server.url, username="demo"), key=key or server.api_key)


def problem_of(address, server=None):
    with pytest.raises(UploaderError) as caught:
        check_address(server or Server(), address, CancelFlag())
    return caught.value.problem_code


def test_an_address_is_found_without_its_scheme(server):
    address = server.url.removeprefix("http://")

    assert check_address(Server(), address, CancelFlag()) == ServerCheckResult(server.url)


@pytest.mark.parametrize("path", ["/api/v1/", "/", "/api/v1/dataset/?format=json"])
def test_an_address_is_found_as_it_is_pasted(server, path):
    assert check_address(Server(), server.url + path, CancelFlag()) == ServerCheckResult(server.url)


def test_the_address_of_a_page_leads_to_its_server(server):
    found = check_address(Server(), f"{server.url}/dashboard/mine", CancelFlag())

    assert found.url == server.url
    assert found.problem is not None


def test_a_server_that_moved_says_where(server):
    target = "https://new.example.org/api/v1/?format=json"
    server.faults.add(Fault(action=Reply(301, headers={"Location": target}), count=None))

    found = check_address(Server(), server.url, CancelFlag())

    assert (found.url, found.problem.code) == ("https://new.example.org", "server.moved")


def test_a_login_page_is_not_a_server(server):
    server.faults.add(Fault(action=HTML_PAGE, count=None))

    assert problem_of(server.url) == "server.web-page"


def test_something_else_is_not_a_server(server):
    server.faults.add(Fault(action=Reply(404, b"no", TEXT), count=None))

    assert problem_of(server.url) == "server.not-mytardis"


def test_a_server_without_the_app_is_reported(server):
    api = Reply(200, b'{"dataset": {}, "user": {}}', {"Content-Type": "application/json"})
    server.faults.add(Fault(action=api, count=None))

    assert problem_of(server.url) == "server.no-mydata"


@pytest.mark.parametrize("text", ["", "https://", "two words", "ftp://example.org"])
def test_an_invalid_address_is_reported_at_once(text):
    assert problem_of(text) == "server.address"


def test_an_unreachable_server_is_reported():
    assert problem_of("http://127.0.0.1:9") == "server.unreachable"


def test_the_account_is_known_by_its_name(server):
    assert check_account(login(server), CancelFlag()).full_name == "Demo Account"


def test_a_wrong_key_is_refused(server):
    with pytest.raises(AccessDeniedError):
        check_account(login(server, "0" * 40), CancelFlag())


def test_the_key_that_is_kept_counts_where_none_is_typed(server, tmp_path):
    config = tmp_path / "settings.toml"
    settings = Settings(server=Server(url=server.url, username="demo"))
    store_api_key(settings, open_secrets(config), server.api_key, "file")

    assert check_account(Credentials(settings.server, config), CancelFlag()).username == "demo"


def test_facilities_and_instruments_are_those_of_the_account(server):
    api = Api(server)
    for name in ("Scope 2", "Scope 1"):
        api.post("instrument/", json={"facility": "/api/v1/facility/1/", "name": name})
    api.close()

    (facility,) = list_facilities(login(server), CancelFlag())

    assert facility.name == "Demo Facility"
    assert list_instruments(login(server), facility, CancelFlag()) == ["Scope 1", "Scope 2"]


def test_an_account_without_facilities_is_reported_as_such(server):
    visitor = Credentials(Server(url=server.url, username="visitor"), key=server.key_of("visitor"))

    with pytest.raises(UploaderError, match="does not manage any facility"):
        list_facilities(visitor, CancelFlag())


def test_a_login_does_not_show_its_key(server):
    assert server.api_key not in repr(login(server))


def test_the_start_page_shows_what_is_set_and_whether_the_key_is_stored(server, tmp_path):
    config = tmp_path / "settings.toml"
    assert not find_setup_state(config).has_key

    save_settings(config, {"server.url": server.url, "server.username": "demo"})
    settings = find_setup_state(config).loaded.settings
    store_api_key(settings, open_secrets(config), server.api_key, "file")

    assert settings.server.username == "demo"
    assert find_setup_state(config).has_key


def test_the_own_key_is_made_once(tmp_path):
    made = show_key(Settings(), tmp_path / "settings.toml")

    assert made.fingerprint.startswith("SHA256:")
    assert show_key(Settings(), tmp_path / "settings.toml") == made


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    for path in ("alice/mice/day 1/a.tif", "alice/mice/day 2/b.tif", "guest/x/day 1/c.tif"):
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"bytes")
    return folder


def look_at(data, layout, login, cancel=None):
    settings = Settings(server=login.server, data=Data(directory=data, layout=layout))
    samples = []
    found = preview_layout(settings, login, samples.append, cancel or CancelFlag())
    return samples, found


def test_a_preview_shows_what_folders_become(data, server):
    samples, found = look_at(data, Layout.USERNAME_EXPERIMENT_DATASET, login(server))

    shown = [(s.owner, s.experiment, s.dataset, s.files, s.size) for s in samples]
    assert shown == [
        ("alice", "mice", "day 1", 1, 5),
        ("alice", "mice", "day 2", 1, 5),
        ("guest", "x", "day 1", 1, 5),
    ]
    assert (found.folders, found.complete, found.misfits) == (3, True, ())
    assert found.strangers == ("guest",)
    assert found.suggestion is None


def test_a_preview_suggests_the_layout_that_fits(data, server):
    _, found = look_at(data, Layout.USERNAME_DATASET, login(server))

    assert found.suggestion is Layout.USERNAME_EXPERIMENT_DATASET


def test_a_preview_shows_what_does_not_fit(data, server):
    (data / "alice" / "notes.txt").write_text("note")

    _, found = look_at(data, Layout.USERNAME_EXPERIMENT_DATASET, login(server))

    assert found.misfits == ("alice",)


def test_a_preview_knows_groups_where_the_layout_has_them(data, server):
    (data / "alice").rename(data / "lab-a")

    _, found = look_at(data, Layout.GROUP_EXPERIMENT_DATASET, login(server))

    assert found.strangers == ("guest",)


@needs_undecodable_names
def test_a_preview_is_not_disturbed_by_names_that_are_no_text(data, server):
    (data / "\udcff" / "x" / "day 1").mkdir(parents=True)

    samples, found = look_at(data, Layout.USERNAME_EXPERIMENT_DATASET, login(server))

    assert len(samples) == 3
    assert found.strangers == ("guest",)


def test_a_preview_works_without_the_server(data):
    nobody = Credentials(Server(url="http://127.0.0.1:9", username="demo"), key="0" * 40)

    samples, found = look_at(data, Layout.USERNAME_EXPERIMENT_DATASET, nobody)

    assert len(samples) == 3
    assert found.strangers is None


def test_a_preview_ends_when_it_is_asked_to(data, server):
    cancel = CancelFlag()
    cancel.set()

    with pytest.raises(Cancelled):
        look_at(data, Layout.DATASET, login(server), cancel)
