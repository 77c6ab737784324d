"""The API key: kept in the system's keyring, or where a person has put it on purpose.

It is looked for where somebody named it most expressly: the environment, the system's service
manager, the secrets file, the keyring. Nothing here is encrypted by ourselves: a key beside its
lock would only look safe.
"""

import os
import stat
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from mydata_like.core.errors import SettingsError
from mydata_like.settings.atomic_write import write_private
from mydata_like.settings.values import server_origin
from mydata_like.store.environment import API_KEY

CREDENTIAL = "mydata-like-api-key"
_LONGEST = 1280  # characters; what the Windows vault holds
_ADVICE = (
    "Store it with `mydata-like settings set-key`, or give it in the environment variable "
    f"{API_KEY}. MyTardis shows it on the account's page 'Manage Account'."
)


class Secret:
    """A text that never shows itself; only `reveal` gives it away."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        text = text.strip()
        if not text or len(text) > _LONGEST or not text.isprintable() or not text.isascii():
            raise SettingsError(
                "That is no API key: it is empty, too long or has characters that no key has.",
                hint="Copy the key from the account's page on the server once more.",
            )
        self._text = text

    def reveal(self) -> str:
        return self._text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "***"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return "***"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a secret is not written anywhere by accident")


class Owner(NamedTuple):
    """Whose key it is: the server's origin (`https://data.example.org`) and the account."""

    origin: str
    account: str

    @classmethod
    def of(cls, url: str, account: str) -> "Owner":
        """Return the owner for settings; raises SettingsError while they lack either."""
        if not url or not account:
            raise SettingsError(
                "The API key belongs to a server and an account, and one of them is not set.",
                hint="Set server.url and server.username first.",
            )
        return cls(server_origin(url), account)


class SecretStore(Protocol):
    """A place that keeps API keys; its methods raise SettingsError where it cannot be used."""

    def find(self, owner: Owner) -> Secret | None: ...

    def save(self, owner: Owner, secret: Secret) -> None: ...

    def forget(self, owner: Owner) -> None:
        """Remove the key; it is no fault if there is none."""


class FileSecrets:
    """A TOML file of keys, not encrypted, that only its owner can read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def find(self, owner: Owner) -> Secret | None:
        text = self._load().get(owner.origin, {}).get(owner.account)
        return Secret(text) if text is not None else None

    def save(self, owner: Owner, secret: Secret) -> None:
        table = self._load()
        table.setdefault(owner.origin, {})[owner.account] = secret.reveal()
        self._write(table)

    def forget(self, owner: Owner) -> None:
        table = self._load()
        if table.get(owner.origin, {}).pop(owner.account, None) is not None:
            self._write(table)

    def _write(self, table: Mapping[str, Mapping[str, str]]) -> None:
        import tomlkit  # here: a run only reads

        write_private(self._path, tomlkit.dumps(table).encode())

    def _load(self) -> dict[str, dict[str, str]]:
        try:
            handle = os.open(self._path, os.O_RDONLY | _OPEN_FLAGS)
        except FileNotFoundError:
            return {}
        except OSError as error:
            reason = f"cannot be opened: {error.strerror or error}"
            raise self._refusal(reason, "It must be a plain file of your own.") from error
        with os.fdopen(handle, "rb") as stream:
            self._check_owner(os.fstat(handle))
            content = stream.read()
        try:
            table = tomllib.loads(content.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            # The parser's words could quote the key.
            raise self._refusal("is not TOML", "Store the keys again in a new file.") from None
        for accounts in table.values():
            if not isinstance(accounts, dict) or not all(map(_is_text, accounts.values())):
                raise self._refusal("holds something else", "Store the keys again in a new file.")
        return table

    def _check_owner(self, status: os.stat_result) -> None:
        if os.name == "nt":  # the profile's own access list guards it
            return
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise self._refusal("is not yours", "It must be a plain file of your own.")
        if status.st_mode & 0o077:
            raise self._refusal("can be read by others", f"Run: chmod 600 '{self._path}'")

    def _refusal(self, reason: str, hint: str) -> SettingsError:
        return SettingsError(f"The secrets file {self._path} {reason}.", hint=hint)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


_OPEN_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class SecretSources(NamedTuple):
    """Where an API key is looked for, the first that has one wins.

    The secrets file comes before the keyring: it exists only where a person chose it, mostly
    because the keyring of that machine cannot be asked.
    """

    environment: Mapping[str, str]
    file: SecretStore
    keyring: SecretStore


def load_api_key(sources: SecretSources, owner: Owner) -> tuple[Secret, str]:
    """Return the API key and the words for where it was found; raises SettingsError."""
    if sources.environment.get(API_KEY):
        return Secret(sources.environment[API_KEY]), f"the environment variable {API_KEY}"
    if secret := _load_credential(sources.environment):
        return secret, "the service manager's credentials"
    if secret := sources.file.find(owner):
        return secret, "the secrets file"
    if secret := sources.keyring.find(owner):
        return secret, "the keyring"
    raise SettingsError(
        f"There is no API key for {owner.account} on {owner.origin}.",
        hint=_ADVICE,
        code="settings.no-key",
    )


def _load_credential(environment: Mapping[str, str]) -> Secret | None:
    """Return what systemd's `LoadCredential=mydata-like-api-key:...` hands over, if anything."""
    folder = environment.get("CREDENTIALS_DIRECTORY")
    if not folder:
        return None
    with suppress(FileNotFoundError):
        try:
            return Secret((Path(folder) / CREDENTIAL).read_text("utf-8"))
        except (PermissionError, IsADirectoryError, UnicodeDecodeError) as error:
            raise SettingsError(
                f"The credential {CREDENTIAL} of the service cannot be read.",
                hint="Check LoadCredential= in the service's unit.",
            ) from error
    return None
