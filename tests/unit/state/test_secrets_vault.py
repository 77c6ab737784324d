import threading

import pytest
from keyring.backends.chainer import ChainerBackend
from keyring.backends.fail import Keyring as FailKeyring
from keyring.backends.null import Keyring as NullKeyring
from keyring.backends.SecretService import Keyring as SecretServiceKeyring
from keyring.errors import InitError

from mydata_like.core.errors import SettingsError
from mydata_like.state.secrets import KeyringSecrets, Owner, Secret, choose_vault

KEY = Secret("0123456789abcdef-canary")
OWNER = Owner("https://data.example.org", "facility")


class MemoryVault:
    """A keyring in memory; with `broken` it fails as a locked one does."""

    def __init__(self, *, broken=False):
        self.passwords = {}
        self.questions = 0
        self._broken = broken

    def get_password(self, service, username):
        self.questions += 1
        if self._broken:
            raise InitError("Failed to unlock the collection: prompt dismissed")
        return self.passwords.get((service, username))

    def set_password(self, service, username, password):
        self.passwords[service, username] = password

    def delete_password(self, service, username):
        del self.passwords[service, username]


class ForgetfulVault(MemoryVault):
    def set_password(self, service, username, password):
        pass


class SilentVault(MemoryVault):
    """A locked keyring that waits for someone to unlock it."""

    def __init__(self):
        super().__init__()
        self.unlocked = threading.Event()

    def get_password(self, service, username):
        self.questions += 1
        self.unlocked.wait(30)


class Chain(ChainerBackend):
    """Stands for the keyring library's own chain, with given members."""

    __module__ = ChainerBackend.__module__
    __qualname__ = ChainerBackend.__qualname__
    backends = ()

    def __init__(self, *backends):
        self.backends = backends


@pytest.mark.parametrize(
    "backend", [FailKeyring(), NullKeyring(), MemoryVault(), Chain(NullKeyring(), FailKeyring())]
)
def test_a_keyring_that_does_not_keep_secrets_safe_is_refused(backend):
    with pytest.raises(SettingsError, match="no keyring that stores secrets safely") as raised:
        choose_vault(backend)

    assert "--store=file" in raised.value.hint


def test_the_good_member_of_a_chain_is_used():
    good = SecretServiceKeyring()

    assert choose_vault(good) is good
    assert choose_vault(Chain(NullKeyring(), good)) is good


def test_a_key_is_kept_under_the_servers_origin_and_asked_for_once():
    vault = MemoryVault()
    KeyringSecrets(lambda: vault).save(OWNER, KEY)
    vault.questions = 0

    secrets = KeyringSecrets(lambda: vault)
    found = [secrets.find(OWNER), secrets.find(OWNER)]

    assert found == [KEY, KEY]
    assert vault.questions == 1
    assert vault.passwords == {("mydata-like:https://data.example.org", "facility"): KEY.reveal()}


def test_a_forgotten_key_is_gone():
    vault = MemoryVault()
    secrets = KeyringSecrets(lambda: vault)
    secrets.save(OWNER, KEY)

    secrets.forget(OWNER)
    secrets.forget(OWNER)

    assert secrets.find(OWNER) is None
    assert not vault.passwords


def test_a_keyring_that_keeps_nothing_is_reported():
    with pytest.raises(SettingsError, match="did not store the key"):
        KeyringSecrets(ForgetfulVault).save(OWNER, KEY)


def test_a_keyring_that_fails_is_reported_with_advice():
    with pytest.raises(SettingsError, match=r"failed \(InitError\)") as raised:
        KeyringSecrets(lambda: MemoryVault(broken=True)).find(OWNER)

    assert "Unlock the keyring" in raised.value.hint


def test_a_keyring_that_cannot_be_opened_is_reported():
    with pytest.raises(SettingsError, match="no keyring"):
        KeyringSecrets(lambda: choose_vault(NullKeyring())).find(OWNER)


def test_a_keyring_that_does_not_answer_is_given_up_at_the_deadline_and_not_asked_again():
    vault = SilentVault()
    secrets = KeyringSecrets(lambda: vault, deadline=0.05)

    with pytest.raises(SettingsError, match=r"did not respond within 0\.05 seconds"):
        secrets.find(OWNER)
    with pytest.raises(SettingsError, match="does not respond"):
        secrets.find(OWNER)

    vault.unlocked.set()
    for thread in threading.enumerate():
        if thread.name == "keyring":
            thread.join()
    assert vault.questions == 1


def test_no_thread_outlives_an_answer():
    KeyringSecrets(MemoryVault).find(OWNER)

    assert all(thread.name != "keyring" for thread in threading.enumerate())
