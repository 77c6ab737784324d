"""The system's keyring, asked with a deadline and only where it really keeps secrets."""

import queue
import sys
import threading
from collections.abc import Callable
from typing import Any, Protocol

from mydata_like.core.errors import SettingsError
from mydata_like.store.secrets import Owner, Secret

_GOOD = (
    "keyring.backends.SecretService.Keyring",
    "keyring.backends.libsecret.Keyring",
    "keyring.backends.kwallet.DBusKeyring",
    "keyring.backends.kwallet.DBusKeyringKWallet4",
    "keyring.backends.macOS.Keyring",
    "keyring.backends.Windows.WinVaultKeyring",
)
_CHAINER = "keyring.backends.chainer.ChainerBackend"
# What the backends let through from the libraries below them.
_FOREIGN = (
    ("keyring.errors", "KeyringError"),
    ("secretstorage.exceptions", "SecretStorageException"),
    ("jeepney.wrappers", "DBusErrorResponse"),
    ("jeepney.io.common", "RouterClosed"),
    ("win32ctypes.pywin32.pywintypes", "error"),
)
_ADVICE = (
    "Unlock the keyring, or keep the key in the environment variable MYDATA_LIKE_API_KEY, or in "
    "a file that only you can read (not encrypted): `mydata-like settings set-key --store=file`."
)


class Vault(Protocol):
    """What we use of one of the keyring library's backends."""

    def get_password(self, service: str, username: str) -> str | None: ...

    def set_password(self, service: str, username: str, password: str) -> None: ...

    def delete_password(self, service: str, username: str) -> None: ...


def open_system_vault() -> Vault:
    """Return the system's keyring; raises SettingsError where there is none that is safe."""
    import keyring  # here: it looks through all installed packages, and few commands need it

    return choose_vault(keyring.get_keyring())


def choose_vault(backend: Any) -> Vault:
    """Return the backend, or the first good one of a chain.

    Only backends known to keep secrets well count: others lose them silently, keep them as
    plain text or ask for a password at the terminal.
    """
    chain = backend.backends if _name(backend) == _CHAINER else [backend]
    for candidate in chain:
        if _name(candidate) in _GOOD:
            vault: Vault = candidate
            return vault
    raise SettingsError(
        f"This computer has no keyring that keeps secrets safe (found: {_name(backend)}).",
        hint=_ADVICE,
        code="settings.no-keyring",
    )


def _name(backend: object) -> str:
    return f"{type(backend).__module__}.{type(backend).__qualname__}"


class KeyringSecrets:
    """Keys in the system's keyring, remembered for as long as the program runs.

    A locked keyring may wait for a person who is not there: each question has a deadline, and
    after one was missed the keyring is not asked again.
    """

    def __init__(
        self, open_vault: Callable[[], Vault] = open_system_vault, deadline: float = 10.0
    ) -> None:
        self._open_vault = open_vault
        self._deadline = deadline
        self._vault: Vault | None = None
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
        # Some keyrings say yes and keep nothing.
        kept = self._ask(lambda vault: vault.get_password(service, owner.account))
        if kept != text:
            raise _unusable("did not keep the key")
        self._known[owner] = secret

    def forget(self, owner: Owner) -> None:
        self._known.pop(owner, None)
        if self.find(owner) is not None:
            self._ask(lambda vault: vault.delete_password(_service(owner), owner.account))
            self._known.pop(owner, None)

    def _ask(self, question: Callable[[Vault], str | None]) -> str | None:
        with self._lock:
            if self._lost:
                raise _unusable("does not answer")
            answers: queue.SimpleQueue[str | SettingsError | None] = queue.SimpleQueue()
            thread = threading.Thread(
                target=lambda: answers.put(self._answer(question)), name="keyring", daemon=True
            )
            thread.start()
            try:
                answer = answers.get(timeout=self._deadline)
            except queue.Empty:
                self._lost = True
                raise _unusable(f"did not answer within {self._deadline:g} seconds") from None
            thread.join()
        if isinstance(answer, SettingsError):
            raise answer
        return answer

    def _answer(self, question: Callable[[Vault], str | None]) -> str | SettingsError | None:
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
        f"The system's keyring {reason}.", hint=_ADVICE, code="settings.no-keyring"
    )


def _foreign_errors() -> tuple[type[Exception], ...]:
    """Return what a backend may raise, of those libraries that are loaded."""
    loaded = ((sys.modules.get(module), name) for module, name in _FOREIGN)
    found = (getattr(module, name, None) for module, name in loaded if module)
    known = (entry for entry in found if isinstance(entry, type))
    return (OSError, RuntimeError, ValueError, *known)
