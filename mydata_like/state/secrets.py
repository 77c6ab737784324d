"""Keys in the environment, systemd credentials, a secrets file or the system's keyring.

The most explicit source is used: the environment, the service manager, the secrets file, the
keyring. The program does not encrypt keys itself: with the encryption key next to it, a key would
only seem to be safe.
"""

import logging
import os
import queue
import stat
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from mydata_like.core.errors import Problem, SettingsError
from mydata_like.settings.atomic_write import PRIVATE_FILE, PRIVATE_FOLDER, write_private
from mydata_like.settings.values import server_origin
from mydata_like.state.paths import API_KEY, S3_KEY, StatePaths
from mydata_like.state.state_files import NAMES

CREDENTIAL = "mydata-like-api-key"
_LONGEST = 1280  # characters; the limit of the Windows credential store


class Secret:
    """A text that is never displayed; only `reveal` returns it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        text = text.strip()
        if not text or len(text) > _LONGEST or not text.isprintable() or not text.isascii():
            raise SettingsError(
                "This is not a valid key: it is empty, too long or has invalid characters.",
                hint="Copy the key again from where it is shown.",
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
        raise TypeError("a secret must not be pickled")


class Owner(NamedTuple):
    """The owner of a key: the server's origin (`https://data.example.org`) and the account."""

    origin: str
    account: str

    @classmethod
    def of(cls, url: str, account: str) -> "Owner":
        """Return the owner for settings; raises SettingsError if either is missing."""
        if not url or not account:
            raise SettingsError(
                "An API key belongs to a server and an account, but one of them is not set.",
                hint="Set server.url and server.username first.",
            )
        return cls(server_origin(url), account)


class SecretStore(Protocol):
    """A store of API keys; its methods raise SettingsError if it cannot be used."""

    def find(self, owner: Owner) -> Secret | None: ...

    def save(self, owner: Owner, secret: Secret) -> None: ...

    def forget(self, owner: Owner) -> None:
        """Remove the key, if there is one."""

    def find_origins(self, account: str) -> list[str]:
        """Return the servers for which it has a key of this account, if it can list them."""


class FileSecrets:
    """An unencrypted TOML file of keys that only its owner can read."""

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

    def find_origins(self, account: str) -> list[str]:
        return [origin for origin, accounts in self._load().items() if account in accounts]

    def _write(self, table: Mapping[str, Mapping[str, str]]) -> None:
        import tomlkit  # imported here: a run only reads

        write_private(self._path, tomlkit.dumps(table).encode())

    def _load(self) -> dict[str, dict[str, str]]:
        try:
            handle = os.open(self._path, os.O_RDONLY | _OPEN_FLAGS)
        except FileNotFoundError:
            return {}
        except OSError as error:
            reason = f"cannot be opened: {error.strerror or error}"
            raise self._refusal(reason, "It must be a regular file that you own.") from error
        with os.fdopen(handle, "rb") as stream:
            self._check_owner(os.fstat(handle))
            content = stream.read()
        try:
            table = tomllib.loads(content.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            # The parser's message could quote the key.
            raise self._refusal("is not TOML", "Store the keys again in a new file.") from None
        for accounts in table.values():
            if not isinstance(accounts, dict) or not all(
                isinstance(it, str) for it in accounts.values()
            ):
                raise self._refusal("has unexpected content", "Store the keys again in a new file.")
        return table

    def _check_owner(self, status: os.stat_result) -> None:
        if os.name == "nt":  # protected by the access control list of the user profile
            return
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise self._refusal(
                "belongs to another account", "It must be a regular file that you own."
            )
        if status.st_mode & 0o077:
            raise self._refusal("can be read by other accounts", f"Run: chmod 600 '{self._path}'")

    def _refusal(self, reason: str, hint: str) -> SettingsError:
        return SettingsError(f"The secrets file {self._path} {reason}.", hint=hint)


_OPEN_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class SecretSources(NamedTuple):
    """The sources of an API key; the first that has one is used.

    The secrets file comes before the keyring: it exists only if the user chose it, mostly because
    the keyring of that machine is not available.
    """

    environment: Mapping[str, str]
    file: SecretStore
    keyring: SecretStore


class KeyKind(NamedTuple):
    """What a key is called, its environment variable, its systemd credential, and advice.

    `code` is the problem code if there is no key.
    """

    name: str
    variable: str
    credential: str
    advice: str
    code: str


API_KEYS: Final = KeyKind(
    "API key",
    API_KEY,
    CREDENTIAL,
    f"Store it with `mydata-like settings set-key`, or set the environment variable {API_KEY}. "
    "MyTardis shows it on the account's page 'Manage Account'.",
    "settings.no-key",
)
S3_SECRETS: Final = KeyKind(
    "secret of the access key",
    S3_KEY,
    "mydata-like-s3-secret",
    "Store it with `mydata-like settings set-key --s3`, or set the environment variable "
    f"{S3_KEY}. The administrator of the object storage provides it with the access key.",
    "s3.no-secret",
)


def load_key(sources: SecretSources, owner: Owner, kind: KeyKind = API_KEYS) -> tuple[Secret, str]:
    """Return a key and the name of its source; raises SettingsError."""
    try:
        found = find_key(sources, owner, kind)
    except SettingsError as error:
        if error.problem_code != "settings.no-keyring":
            raise
        _raise_stored_elsewhere(sources, owner, kind)
        if kind == API_KEYS:
            raise
        hint = f"{kind.advice} Without a keyring, use `--store=file`."
        raise SettingsError(error.message, hint=hint, code=kind.code) from error
    if found is None:
        _raise_stored_elsewhere(sources, owner, kind)
        raise SettingsError(
            f"There is no {kind.name} for {owner.account} on {owner.origin}.",
            hint=kind.advice,
            code=kind.code,
        )
    return found


def _raise_stored_elsewhere(sources: SecretSources, owner: Owner, kind: KeyKind) -> None:
    """Raise an error that names the address for which the account's API key is stored, if any."""
    if kind != API_KEYS or not (origins := sources.file.find_origins(owner.account)):
        return
    raise SettingsError(
        f"There is no API key for {owner.account} on {owner.origin}, but one is stored for "
        f"{origins[-1]}.",
        hint=offer_key(origins[-1]),
        code=kind.code,
    )


def offer_key(origin: str) -> str:
    """Return how to use the key that is stored for another address of the server."""
    return (
        "If both are addresses of the same server, use that key: mydata-like settings set-key "
        f"--from {origin}"
    )


def find_key(sources: SecretSources, owner: Owner, kind: KeyKind) -> tuple[Secret, str] | None:
    """Return a key and the name of its source; raises SettingsError if a source cannot be used."""
    if text := sources.environment.get(kind.variable):
        return Secret(text), f"the environment variable {kind.variable}"
    if secret := _load_credential(sources.environment, kind.credential):
        return secret, "the service manager's credentials"
    if secret := sources.file.find(owner):
        return secret, "the secrets file"
    secret = sources.keyring.find(owner)
    return (secret, "the keyring") if secret else None


def _load_credential(environment: Mapping[str, str], name: str) -> Secret | None:
    """Return the credential of systemd's `LoadCredential=NAME:...`, if any."""
    folder = environment.get("CREDENTIALS_DIRECTORY")
    if not folder:
        return None
    with suppress(FileNotFoundError):
        try:
            return Secret((Path(folder) / name).read_text("utf-8"))
        except (PermissionError, IsADirectoryError, UnicodeDecodeError) as error:
            raise SettingsError(
                f"The credential {name} of the service cannot be read.",
                hint="Check LoadCredential= in the service's unit.",
            ) from error
    return None


_GOOD = (
    "keyring.backends.SecretService.Keyring",
    "keyring.backends.libsecret.Keyring",
    "keyring.backends.kwallet.DBusKeyring",
    "keyring.backends.kwallet.DBusKeyringKWallet4",
    "keyring.backends.macOS.Keyring",
    "keyring.backends.Windows.WinVaultKeyring",
)
_CHAINER = "keyring.backends.chainer.ChainerBackend"
# Work-around: keyring 25.7.0 lets exceptions of the libraries below its backends through.
# https://github.com/jaraco/keyring/issues/514. Remove when all of them are a KeyringError.
_FOREIGN = (
    ("keyring.errors", "KeyringError"),
    ("secretstorage.exceptions", "SecretStorageException"),
    ("jeepney.wrappers", "DBusErrorResponse"),
    ("jeepney.io.common", "RouterClosed"),
    ("win32ctypes.pywin32.pywintypes", "error"),
)
_KEYRING_ADVICE = (
    "Unlock the keyring, or provide the key in the environment variable MYDATA_LIKE_API_KEY, or "
    "store it in an unencrypted file that only you can read: `mydata-like settings set-key "
    "--store=file`."
)


class KeyringStore(Protocol):
    """The methods of a keyring backend that are used here."""

    def get_password(self, service: str, username: str) -> str | None: ...

    def set_password(self, service: str, username: str, password: str) -> None: ...

    def delete_password(self, service: str, username: str) -> None: ...


def open_system_vault() -> KeyringStore:
    """Return the system's keyring; raises SettingsError if there is no safe one."""
    import keyring  # imported here: it scans all installed packages, and few commands need it

    return choose_vault(keyring.get_keyring())


def choose_vault(backend: Any) -> KeyringStore:
    """Return the backend, or the first supported one of a chain.

    Only backends known to store secrets safely are supported: others lose them silently, store them
    as plain text or prompt for a password in the terminal.
    """
    chain = backend.backends if _name(backend) == _CHAINER else [backend]
    for candidate in chain:
        if _name(candidate) in _GOOD:
            vault: KeyringStore = candidate
            return vault
    raise SettingsError(
        "This computer has no keyring that stores secrets safely.",
        hint=_KEYRING_ADVICE,
        code="settings.no-keyring",
    )


def _name(backend: object) -> str:
    return f"{type(backend).__module__}.{type(backend).__qualname__}"


class KeyringSecrets:
    """Keys in the system's keyring, cached while the program runs.

    A locked keyring may wait for a user who is not present: each request has a deadline, and after
    a missed deadline the keyring is not used again.
    """

    def __init__(
        self, open_vault: Callable[[], KeyringStore] = open_system_vault, deadline: float = 10.0
    ) -> None:
        self._open_vault = open_vault
        self._deadline = deadline
        self._vault: KeyringStore | None = None
        self._known: dict[Owner, Secret] = {}
        self._lock = threading.Lock()
        self._lost = False

    def find(self, owner: Owner) -> Secret | None:
        if owner not in self._known:
            text = self._ask(lambda vault: vault.get_password(_service(owner), owner.account))
            if text is None:
                return None
            self._known[owner] = Secret(text)
        return self._known[owner]

    def save(self, owner: Owner, secret: Secret) -> None:
        service, text = _service(owner), secret.reveal()
        self._ask(lambda vault: vault.set_password(service, owner.account, text))
        # Work-around: keyring 25.7.0 has a backend that reports success without storing anything.
        # https://github.com/jaraco/keyring/issues/541. Remove when it raises an error instead.
        kept = self._ask(lambda vault: vault.get_password(service, owner.account))
        if kept != text:
            raise _unusable("did not store the key")
        self._known[owner] = secret

    def forget(self, owner: Owner) -> None:
        self._known.pop(owner, None)
        if self.find(owner) is not None:
            self._ask(lambda vault: vault.delete_password(_service(owner), owner.account))
            self._known.pop(owner, None)

    def find_origins(self, account: str) -> list[str]:
        return []  # keyrings find a key by its address only

    def _ask(self, question: Callable[[KeyringStore], str | None]) -> str | None:
        with self._lock:
            if self._lost:
                raise _unusable("does not respond")
            answers: queue.SimpleQueue[str | SettingsError | None] = queue.SimpleQueue()
            thread = threading.Thread(
                target=lambda: answers.put(self._answer(question)), name="keyring", daemon=True
            )
            thread.start()
            try:
                answer = answers.get(timeout=self._deadline)
            except queue.Empty:
                self._lost = True
                raise _unusable(f"did not respond within {self._deadline:g} seconds") from None
            thread.join()
        if isinstance(answer, SettingsError):
            raise answer
        return answer

    def _answer(self, question: Callable[[KeyringStore], str | None]) -> str | SettingsError | None:
        try:
            self._vault = self._vault or self._open_vault()
            return question(self._vault)
        except SettingsError as error:
            return error
        except _foreign_errors() as error:
            return _unusable(f"failed ({type(error).__name__})")


def _service(owner: Owner) -> str:
    return f"mydata-like:{owner.origin}"


def _unusable(reason: str) -> SettingsError:
    return SettingsError(
        f"The system's keyring {reason}.", hint=_KEYRING_ADVICE, code="settings.no-keyring"
    )


def _foreign_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that a backend may raise, from loaded libraries only."""
    loaded = ((sys.modules.get(module), name) for module, name in _FOREIGN)
    found = (getattr(module, name, None) for module, name in loaded if module)
    known = (entry for entry in found if isinstance(entry, type))
    return (OSError, RuntimeError, ValueError, *known)


logger = logging.getLogger(__name__)

_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_WRITABLE: Final = stat.S_IWGRP | stat.S_IWOTH
# Only files with our names: a folder chosen in the settings may contain others. The signal file is
# meant to be read by others, and an exposed private key is refused rather than corrected.
_STATE: Final = (
    *("ledger-*.db*", "ledger-*.corrupt-*", "shard-*-of-*/ledger-*.db*", "uploader-uuid"),
    *("choices-*.json", "shard-*-of-*/choices-*.json"),
    *("run-*.json", "run-*.lock", "shard-*-of-*/run-*.json", "shard-*-of-*/run-*.lock"),
    *("watch.json", "watch.lock", "window.ini", *NAMES),
)
_LOGS: Final = ("mydata-like*.log*",)
_SHOWN: Final = 3  # paths in the notice


def correct_modes(places: StatePaths, state: Path) -> Problem | None:
    """Set our folders to 0700 and our files to 0600 if other accounts have access; report changes.

    Unchanged are a folder that the user chose (by the settings, `--config` or the environment),
    files in a folder that others can write, and everything that belongs to another account. `state`
    is the state folder of the settings.
    """
    if os.name != "posix":
        return None
    corrected = [path for path, mode in _find(places, state) if _correct(path, mode)]
    if not corrected:
        return None
    for path in corrected:
        logger.warning("Other accounts had access to %s; it was removed", path)
    shown = ", ".join(map(str, corrected[:_SHOWN]))
    more = f" and {len(corrected) - _SHOWN:,} more" if len(corrected) > _SHOWN else ""
    return Problem(
        "files.exposed",
        f"Other accounts of this computer could read or change {shown}{more}; their access was "
        "removed.",
        "If this access was not intended, find out who had it: the ledger and the logs contain "
        "file names.",
    )


def judge_folder(state: Path) -> Problem | None:
    """Return that other accounts may replace files in a state folder that the user chose."""
    if os.name != "posix":
        return None
    status = state.stat()
    if status.st_uid in (0, os.geteuid()) and not status.st_mode & _WRITABLE:
        return None
    return Problem(
        "files.shared",
        f"Other accounts of this computer may change the files in {state}: with them, they could "
        "make the program call files safe that are not.",
        f"Take their permission away (chmod go-w {state}), or choose another folder in "
        "advanced.state_directory.",
    )


def _find(places: StatePaths, state: Path) -> Iterator[tuple[Path, int]]:
    """Yield our paths with their intended modes, folders before their contents."""
    usual = StatePaths.standard()
    yield from ((folder, PRIVATE_FOLDER) for folder in (places.state, places.logs))
    yield from ((shard, PRIVATE_FOLDER) for shard in state.glob("shard-*-of-*"))
    if places.key_file == usual.key_file:
        yield places.key_file.parent.parent, PRIVATE_FOLDER
    yield places.key_file.parent, PRIVATE_FOLDER
    if places.config_file == usual.config_file:
        yield places.config_file.parent, PRIVATE_FOLDER
        yield places.config_file, PRIVATE_FILE
    hosts = places.known_hosts
    yield from ((path, PRIVATE_FILE) for path in hosts.parent.glob(f"{hosts.name}*"))
    for folder, names in ((state, _STATE), (places.logs, _LOGS)):
        for name in names:
            yield from ((path, PRIVATE_FILE) for path in folder.glob(name))


def _correct(path: Path, mode: int) -> bool:
    """Return whether a file or folder had another mode, and now has this one."""
    try:
        status = path.lstat()
        usual = stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)
        if not usual or status.st_uid != os.geteuid() or not status.st_mode & _OTHERS:
            return False
        # In a folder that others can write, they could replace the file meanwhile.
        if not stat.S_ISDIR(status.st_mode) and path.parent.stat().st_mode & _WRITABLE:
            return False
        path.chmod(mode)
    except FileNotFoundError:
        return False
    except OSError as error:
        logger.warning("The permissions of %s cannot be changed: %s", path, error)
        return False
    return True
