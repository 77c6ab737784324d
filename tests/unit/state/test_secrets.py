import logging
import os
import pickle

import pytest

from mydata_like.core.errors import SettingsError
from mydata_like.state.secrets import (
    API_KEYS,
    S3_SECRETS,
    FileSecrets,
    Owner,
    Secret,
    SecretSources,
    load_key,
)
from tests.privileges import IS_ROOT, needs_links
from tests.umasks import has_mode, posix_modes

KEY = "0123456789abcdef-canary"
OWNER = Owner("https://data.example.org", "facility")


class MemorySecrets:
    def __init__(self, *texts):
        self._texts = texts
        self.asked = 0

    def find(self, owner):
        self.asked += 1
        return Secret(self._texts[0]) if self._texts else None

    def save(self, owner, secret):
        self._texts = (secret.reveal(),)

    def forget(self, owner):
        self._texts = ()

    def find_origins(self, account):
        return []


@pytest.fixture
def path(tmp_path):
    return tmp_path / "secrets.toml"


def test_a_secret_never_shows_itself(caplog):
    secret = Secret(KEY)

    logging.getLogger("test").warning("%s %r", secret, {"key": secret})
    shown = f"{secret} {secret!r} {secret!s:>30} {[secret]} {caplog.text}"

    assert KEY not in shown
    assert secret.reveal() == KEY
    assert not hasattr(secret, "__dict__")


def test_a_secret_is_not_pickled_by_accident():
    with pytest.raises(TypeError):
        pickle.dumps(Secret(KEY))


@pytest.mark.parametrize("text", ["", " ", "a\nb", "k\u00e9y", "x" * 2000, "a\0"])
def test_an_invalid_key_is_refused_without_being_shown(text):
    with pytest.raises(SettingsError, match="not a valid key") as raised:
        Secret(text)

    assert not text.strip() or text not in str(raised.value)


def test_blanks_around_a_key_do_not_matter():
    assert Secret(f" {KEY}\n") == Secret(KEY)


def test_a_key_belongs_to_an_origin_and_an_account():
    owner = Owner.of("https://Data.example.org/mytardis", "facility")

    assert owner == OWNER
    with pytest.raises(SettingsError, match="not set"):
        Owner.of("https://data.example.org", "")


def test_a_key_kept_in_a_file_is_found_again_by_its_owner_only(path):
    FileSecrets(path).save(OWNER, Secret(KEY))
    FileSecrets(path).save(OWNER._replace(account="b"), Secret("other"))

    assert FileSecrets(path).find(OWNER) == Secret(KEY)
    assert FileSecrets(path).find(OWNER._replace(origin="https://evil.example.org")) is None
    assert has_mode(path, 0o600)


def test_a_forgotten_key_is_gone_from_the_file(path):
    store = FileSecrets(path)
    store.save(OWNER, Secret(KEY))

    store.forget(OWNER)
    store.forget(OWNER)

    assert store.find(OWNER) is None
    assert KEY not in path.read_text()


@posix_modes
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_secrets_file_that_others_can_read_is_refused(path, mode):
    FileSecrets(path).save(OWNER, Secret(KEY))
    path.chmod(mode)

    with pytest.raises(SettingsError, match="can be read by other accounts"):
        FileSecrets(path).find(OWNER)


@pytest.mark.skipif(not IS_ROOT, reason="only root can give files away")
def test_a_secrets_file_of_another_owner_is_refused(path):
    FileSecrets(path).save(OWNER, Secret(KEY))
    os.chown(path, 65534, 65534)

    with pytest.raises(SettingsError, match="belongs to another account"):
        FileSecrets(path).find(OWNER)


@needs_links
def test_a_link_to_a_secrets_file_is_refused(path, tmp_path):
    FileSecrets(tmp_path / "real").save(OWNER, Secret(KEY))
    path.symlink_to(tmp_path / "real")

    with pytest.raises(SettingsError, match="cannot be opened"):
        FileSecrets(path).find(OWNER)


@pytest.mark.parametrize("content", [f"key = {KEY}", f'"a" = "{KEY}"', f"[a]\nb = ['{KEY}']", "\0"])
def test_a_broken_secrets_file_is_reported_without_its_content(path, content):
    path.write_text(content)
    path.chmod(0o600)

    with pytest.raises(SettingsError) as raised:
        FileSecrets(path).find(OWNER)

    assert KEY not in f"{raised.value} {raised.value.hint}"
    assert raised.value.__cause__ is None


@pytest.mark.parametrize(
    ("kind", "variable", "credential"),
    [
        (API_KEYS, "MYDATA_LIKE_API_KEY", "mydata-like-api-key"),
        (S3_SECRETS, "MYDATA_LIKE_S3_SECRET", "mydata-like-s3-secret"),
    ],
)
def test_the_most_express_place_of_a_key_wins(tmp_path, kind, variable, credential):
    (tmp_path / credential).write_text("from-service\n")
    environment = {variable: "from-variable", "CREDENTIALS_DIRECTORY": str(tmp_path)}
    file, keyring = MemorySecrets("from-file"), MemorySecrets("from-keyring")

    found = []
    for gone in (variable, "CREDENTIALS_DIRECTORY"):
        found.append(load_key(SecretSources(environment, file, keyring), OWNER, kind))
        environment.pop(gone)
    found.append(load_key(SecretSources(environment, file, keyring), OWNER, kind))
    assert not keyring.asked
    file.forget(OWNER)
    found.append(load_key(SecretSources(environment, file, keyring), OWNER, kind))

    assert [(secret.reveal(), place) for secret, place in found] == [
        ("from-variable", f"the environment variable {variable}"),
        ("from-service", "the service manager's credentials"),
        ("from-file", "the secrets file"),
        ("from-keyring", "the keyring"),
    ]


def test_a_service_without_our_credential_looks_further(tmp_path):
    sources = SecretSources(
        {"CREDENTIALS_DIRECTORY": str(tmp_path)}, MemorySecrets(), MemorySecrets(KEY)
    )

    assert load_key(sources, OWNER)[0] == Secret(KEY)


def test_a_credential_that_cannot_be_read_is_reported(tmp_path):
    (tmp_path / "mydata-like-api-key").mkdir()
    sources = SecretSources(
        {"CREDENTIALS_DIRECTORY": str(tmp_path)}, MemorySecrets(), MemorySecrets(KEY)
    )

    with pytest.raises(SettingsError, match="credential"):
        load_key(sources, OWNER)


def test_without_any_key_the_advice_says_what_to_do():
    with pytest.raises(SettingsError, match="no API key for facility") as raised:
        load_key(SecretSources({}, MemorySecrets(), MemorySecrets()), OWNER)

    assert "set-key" in raised.value.hint
    assert raised.value.problem_code == "settings.no-key"


class NoKeyring(MemorySecrets):
    def find(self, owner):
        raise SettingsError("No keyring.", hint="Unlock it.", code="settings.no-keyring")


@pytest.mark.parametrize("keyring", [MemorySecrets(), NoKeyring()], ids=["empty", "none"])
def test_a_missing_s3_secret_has_its_own_code_and_advice(keyring):
    with pytest.raises(SettingsError) as raised:
        load_key(SecretSources({}, MemorySecrets(), keyring), OWNER, S3_SECRETS)

    assert raised.value.problem_code == "s3.no-secret"
    assert "set-key --s3" in raised.value.hint


class NoKeyring(MemorySecrets):
    def find(self, owner):
        raise SettingsError("There is no keyring.", code="settings.no-keyring")


@pytest.mark.parametrize("keyring", [MemorySecrets(), NoKeyring()], ids=["empty", "none"])
def test_a_key_for_another_address_of_the_server_is_named(path, keyring):
    file = FileSecrets(path)
    file.save(Owner("https://old.example.org", "facility"), Secret(KEY))
    file.save(Owner("https://other.example.org", "somebody"), Secret(KEY))

    with pytest.raises(SettingsError) as caught:
        load_key(SecretSources({}, file, keyring), OWNER)

    assert caught.value.problem_code == "settings.no-key"
    assert "one is stored for https://old.example.org" in caught.value.message
    assert "set-key --from https://old.example.org" in caught.value.hint
    assert KEY not in caught.value.message + caught.value.hint
