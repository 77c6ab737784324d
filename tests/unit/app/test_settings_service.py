from mydata_like.app.settings_service import find_api_key, store_api_key
from mydata_like.settings.schema import Server, Settings
from mydata_like.state.secrets import FileSecrets, KeyringSecrets, Secret, SecretSources


class MemoryVault:
    def __init__(self):
        self._passwords = {}

    def get_password(self, service, username):
        return self._passwords.get((service, username))

    def set_password(self, service, username, password):
        self._passwords[service, username] = password

    def delete_password(self, service, username):
        del self._passwords[service, username]


def test_a_key_put_into_the_keyring_replaces_one_in_the_file(tmp_path):
    settings = Settings(server=Server(url="https://data.example.org/", username="facility"))
    vault = MemoryVault()
    file = FileSecrets(tmp_path / "secrets.toml")
    secrets = SecretSources({}, file, KeyringSecrets(lambda: vault))

    store_api_key(settings, secrets, "old", "file")
    assert find_api_key(settings, secrets) == (Secret("old"), "the secrets file")
    store_api_key(settings, secrets, "new", "keyring")

    assert find_api_key(settings, secrets) == (Secret("new"), "the keyring")
    assert "old" not in (tmp_path / "secrets.toml").read_text()
