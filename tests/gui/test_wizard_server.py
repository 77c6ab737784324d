"""What the wizard says of servers and keys that are not right."""

import pytest

from mydata_like.app.settings_service import (
    load_settings,
    open_secrets,
    save_settings,
    store_api_key,
)
from mydata_like.demo.demo_server import EmbeddedServer
from mydata_like.demo.middleware import HTML_PAGE, Fault, Hang, Reply
from mydata_like.gui.settings_editor.secret_row import FormerKeyQuestion
from mydata_like.gui.wizard import SetupWizard
from mydata_like.gui.wizard.step_base import Readiness
from tests.embedded import Api
from tests.gui.setting_up import Person


@pytest.fixture
def server(tmp_path):
    with EmbeddedServer(tmp_path / "server", auto_approve=False) as server:
        yield server


@pytest.fixture
def config(tmp_path):
    return tmp_path / "settings.toml"


@pytest.fixture
def open_wizard(open_context, config, qtbot):
    """Return a user before the wizard, at its first incomplete page."""

    def open_it(**settings):
        save_settings(config, {key.replace("__", "."): value for key, value in settings.items()})
        context = open_context(config)
        wizard = SetupWizard(context)
        qtbot.addWidget(wizard)
        wizard.show()
        person = Person(wizard, qtbot, context.tasks)
        person.wait(lambda: not wizard.verdict.text)
        person.choose("mytardis")
        return person

    return open_it


def keep_key(config, server):
    settings = load_settings(config).settings
    store_api_key(settings, open_secrets(config), server.api_key, "file")


def check_address(person, text):
    person.type(person.wizard.address.address, text)
    person.wait_checked()
    return person.wizard.address.verdict.text


def test_a_wrong_address_is_explained_and_blocks_the_next_step(open_wizard):
    person = open_wizard()

    assert "names no server" in check_address(person, "two words")
    assert not person.wizard.next.isEnabled()


def test_a_login_page_is_distinguished_from_a_server(open_wizard, server):
    server.faults.add(Fault(action=HTML_PAGE, count=None))
    person = open_wizard()

    assert "answers with a web page" in check_address(person, server.url)
    assert not person.wizard.next.isEnabled()


def test_a_server_that_moved_is_followed_with_one_click(open_wizard, server, tmp_path):
    with EmbeddedServer(tmp_path / "new") as new:
        target = {"Location": f"{new.url}/api/v1/?format=json"}
        server.faults.add(Fault(action=Reply(301, headers=target), count=None))
        person = open_wizard()
        assert "another address" in check_address(person, server.url)

        person.wizard.address.better.click()
        person.wait(lambda: person.wizard.address.readiness is Readiness.READY)

        assert person.wizard.address.address.text() == new.url


def test_an_answer_for_an_earlier_address_is_ignored(open_wizard, server):
    server.faults.add(Fault(action=Hang()))
    person = open_wizard()
    person.type(person.wizard.address.address, server.url)
    tasks = person.tasks
    person.wait(lambda: tasks.busy)

    assert "names no server" in check_address(person, "two words")
    person.wait(lambda: not tasks.busy)

    assert "names no server" in person.wizard.address.verdict.text


def test_a_stalled_server_leaves_back_and_later_at_work(open_wizard, server, config):
    person = open_wizard(server__url=server.url)
    server.faults.add(Fault(action=Hang(), count=None))
    person.type(person.wizard.account.username, "demo")
    person.type(person.wizard.account.key, server.api_key)
    person.press_enter()
    assert person.wizard.step.readiness is Readiness.CHECKING

    person.wizard.back.click()
    assert person.wizard.step is person.wizard.address
    person.wizard.later.click()

    assert not person.wizard.isVisible()


def test_a_wrong_key_is_refused_and_a_right_one_greeted(open_wizard, server):
    person = open_wizard(server__url=server.url)
    account = person.wizard.account
    person.type(account.username, "demo")
    person.type(account.key, "0" * 40)
    person.wait(lambda: "does not accept" in account.verdict.text)
    assert not person.wizard.next.isEnabled()

    person.type(account.key, server.api_key)
    person.wait(lambda: account.readiness is Readiness.READY)

    assert account.verdict.text == "You are signed in as Demo Account."


def test_instruments_of_the_facility_are_offered(open_wizard, server, config):
    with Api(server) as api:
        api.post("instrument/", json={"facility": "/api/v1/facility/1/", "name": "Scope 1"})
    save_settings(config, {"server.url": server.url, "server.username": "demo"})
    keep_key(config, server)
    person = open_wizard()
    place = person.wizard.place
    person.wait_checked()

    assert [place.instrument.itemText(i) for i in range(place.instrument.count())] == ["Scope 1"]
    person.type(place.instrument.lineEdit(), "Scope 1")
    assert "knows this instrument" in place.verdict.text


def test_enter_goes_on_and_the_cursor_is_in_the_first_field(open_wizard, server):
    person = open_wizard(server__url=server.url)
    person.wizard.back.click()
    person.wait_checked()

    person.press_enter()
    person.wait_for(person.wizard.account)

    assert person.wizard.account.username.hasFocus()


def test_the_key_of_another_address_is_offered_where_the_wizard_asks_for_it(
    open_wizard, server, config
):
    save_settings(config, {"server.url": server.url, "server.username": "demo"})
    keep_key(config, server)
    person = open_wizard(server__url=server.url.replace("127.0.0.1", "localhost"))
    account = person.wizard.account
    person.wait_for(account)
    person.wait(account.former.isVisible)
    assert account.former.text() == f"Use the key stored for {server.url}…"

    account.former.click()
    question = account.findChild(FormerKeyQuestion)
    next(one for one in question.buttons() if one.text() == "&Use the key").click()

    person.wait(lambda: account.readiness is Readiness.READY)
    assert account.verdict.text == "You are signed in as Demo Account."
    assert not account.former.isVisible()
