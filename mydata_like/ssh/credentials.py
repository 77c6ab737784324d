"""What a user types for logins: passphrases of keys, passwords and one-time codes."""

from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Any, Final, Protocol

from mydata_like.core.formatting import format_path

LOCKED: Final = "key.passphrase"  # the code of the error for a key that needs one
ATTEMPTS: Final = 3  # for a passphrase or a password, as many as OpenSSH allows
_MOST_SHOWN: Final = 300  # characters of a host's question


class Ask(Protocol):
    """Asks the user a question; the answer is hidden while it is typed unless it is `shown`."""

    def __call__(self, question: str, *, shown: bool) -> str: ...


class SharedLogin(Protocol):
    """A login that several sessions use, since the host would not accept the same answers again."""

    @property
    def is_open(self) -> bool: ...

    def share(self) -> Any:
        """Return one of several sessions over this login, an `OpenSession`; it outlives them."""

    def abort(self) -> None: ...


class OpenedSession(Protocol):
    """A session that can be closed, an `OpenSession`."""

    def close(self) -> None: ...


class LoginCredentials:
    """Unlocked private keys, and the answers to questions of hosts; kept in memory only.

    All sessions of this process and of its workers use them, so that nothing is asked twice. `keys`
    are private keys without their passphrases, by the paths of their files. Only this process can
    `ask`, and only where there is a terminal. It also has the `logins` that must be shared, by
    account; they end with it.
    """

    def __init__(
        self,
        ask: Ask | None = None,
        keys: dict[Path, bytes] | None = None,
        answers: dict[tuple[str, str], str] | None = None,
    ) -> None:
        self.ask = ask
        self.keys = keys or {}
        self._answers = answers or {}
        self.logins: dict[str, SharedLogin] = {}
        self._spare: tuple[object, OpenedSession] | None = None
        self._lock = Lock()

    def __repr__(self) -> str:
        return "***"

    def __reduce__(self) -> tuple[object, ...]:
        """Return what a worker gets."""
        return LoginCredentials, (None, self.keys, self._answers)

    def keep(self, place: object, session: OpenedSession) -> None:
        """Keep a session for the next login, if that is to this place; an earlier one is closed."""
        self.take(None)
        with self._lock:
            self._spare = place, session

    def take(self, place: object) -> Any:
        """Return the session that is kept for a place, an `OpenSession`; else close it."""
        with self._lock:
            spare, self._spare = self._spare, None
        if spare is None or spare[0] == place:
            return spare and spare[1]
        spare[1].close()
        return None

    def has_answers(self, account: str) -> bool:
        """Return whether questions of a host for this account were answered."""
        return any(owner == account for owner, _ in self._answers)

    def may_repeat(self, account: str) -> bool:
        """Return whether the answers look like passwords, not like codes that count once."""
        questions = [question for owner, question in self._answers if owner == account]
        return all("password" in question.lower() for question in questions)

    def answer(self, account: str, text: str, questions: Sequence[tuple[str, bool]]) -> list[str]:
        """Return the answers to questions of a host; those without a known one are asked.

        `text` is the host's explanation. With each question comes whether its answer is shown while
        it is typed. An answer that is neither known nor can be asked is empty.
        """
        found = []
        with self._lock:
            for question, shown in questions:
                known = self._answers.get((account, question))
                if known is None and self.ask:
                    asked = format_path(" ".join(f"{text} {question}".split()).encode())
                    known = self.ask(f"({account}) {asked[:_MOST_SHOWN]} ", shown=shown)
                    self._answers[account, question] = known
                found.append(known or "")
        return found

    def forget_answers(self, account: str) -> None:
        """Forget the answers of an account, which the host did not accept."""
        with self._lock:
            for place in [place for place in self._answers if place[0] == account]:
                del self._answers[place]
