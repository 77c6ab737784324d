"""A simulated user of the set-up wizard, with a real server and staging host."""

from contextlib import ExitStack, contextmanager

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from mydata_like.app.onboarding import show_key
from mydata_like.app.settings_service import (
    find_places,
    load_settings,
    open_secrets,
    save_settings,
    store_api_key,
)
from mydata_like.demo.demo_server import EmbeddedServer
from mydata_like.demo.ssh_servers import PrivateSshd
from mydata_like.demo.uploaders import ScpAddress
from mydata_like.gui.wizard import SetupWizard
from mydata_like.gui.wizard.step_base import Readiness
from mydata_like.ssh.keys import load_key
from tests.gui.conftest import DEADLINE
from tests.site import make_data

ENTER = Qt.Key.Key_Return


class Town:
    """A server, a staging host with an unknown host key, and instrument data."""

    def __init__(self, folder, server, sshd):
        self.config = folder / "config" / "settings.toml"
        self.config.parent.mkdir()
        self.data = make_data(folder, tiny_files=4, large=1000)
        self.server = server
        self.sshd = sshd

    @property
    def address(self):
        return self.server.url

    def fill(self, **changes):
        """Write the settings of an earlier set-up."""
        values = {
            "server.url": self.address,
            "server.username": "demo",
            "instrument.facility": "Demo Facility",
            "instrument.name": "Scope 1",
            "instrument.contact_name": "Ada Lovelace",
            "instrument.contact_email": "ada@example.org",
            "data.directory": str(self.data),
        }
        save_settings(
            self.config, {key: value for key, value in values.items() if key not in changes}
        )
        settings = load_settings(self.config).settings
        secrets = open_secrets(self.config)
        store_api_key(settings, secrets, self.server.api_key, "file")

    def approve(self):
        """Approve the key as an administrator does, and authorize it on the staging host."""
        settings = load_settings(self.config).settings
        key = show_key(settings, self.config)
        self.sshd.authorize(load_key(key.path).public)
        (uuid,) = [path.read_text().strip() for path in self.find("uploader-uuid")]
        assert self.server.approve(uuid) == 1

    def expected_files(self):
        """Return all files of the data by dataset, directory and name on the server."""
        paths = [path for path in self.data.glob("*/*/**/*") if path.is_file()]
        parts = [path.relative_to(self.data).parts[1:] for path in paths]
        return {
            (dataset, "/".join(folders), name): path
            for path, (dataset, *folders, name) in zip(paths, parts, strict=True)
        }

    def find(self, name):
        home = find_places(self.config).state
        return list(home.rglob(name))

    @property
    def saved(self):
        return load_settings(self.config).settings


@contextmanager
def open_town(folder, *, host_keys=False):
    """Start server and staging host; with `host_keys`, the server announces the host's key."""
    folder.mkdir()
    with ExitStack() as stack:
        sshd = stack.enter_context(PrivateSshd(folder / "sshd"))
        server = stack.enter_context(EmbeddedServer(folder / "server", auto_approve=False))
        keys = (sshd.fingerprint,) if host_keys else ()
        server.set_address(ScpAddress(sshd.username, sshd.host, sshd.port, keys))
        yield Town(folder, server, sshd)


class Person:
    """A simulated user of the wizard who uses the keyboard."""

    def __init__(self, wizard: SetupWizard, qtbot, tasks=None):
        self.tasks = tasks
        self.wizard = wizard
        self.qtbot = qtbot

    def wait(self, condition):
        self.qtbot.waitUntil(lambda: bool(condition()), timeout=DEADLINE)

    def choose(self, kind):
        """Choose the kind of destination if the wizard is at the first page, and go on."""
        if self.wizard.step is self.wizard.kind:
            self.wizard.kind.kinds[kind].click()
            self.press_enter()
            self.wait(lambda: self.wizard.step is self.wizard.path[1])

    def wait_for(self, step):
        self.wait(lambda: self.wizard.step is step)

    def wait_checked(self):
        self.wait(lambda: self.wizard.step.readiness is not Readiness.CHECKING)

    def type(self, field, text):
        """Replace the text of a field, key by key."""
        field.setFocus()
        field.selectAll()
        QTest.keyClicks(field, text)

    def press_enter(self):
        QTest.keyClick(self.wizard.focusWidget() or self.wizard, ENTER)
