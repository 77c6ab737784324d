"""The port of what sessions lead to: the hosts of a staging area, or what takes their place."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from typing import Self

from mydata_like.ssh.capabilities import HostCapabilities
from mydata_like.ssh.session import OpenSession


class StagingDestination(ABC):
    """What a session leads to; a channel worker receives it and opens the session."""

    __slots__ = ()

    @property
    @abstractmethod
    def host(self) -> str:
        """Its name in messages and events."""

    @property
    @abstractmethod
    def area(self) -> bytes:
        """The path of the staging area there."""

    @abstractmethod
    def connect(
        self, known: HostCapabilities | None, *, confirms: bool
    ) -> tuple[OpenSession, HostCapabilities]:
        """Return a session and its capabilities, which are tried unless they are `known`.

        If it `confirms`, at least the kind of access is tried.
        """

    @abstractmethod
    def limit_opening(self, timeout: float) -> float:
        """Return how long opening a session may take, if each wait takes up to `timeout`."""

    def suit(self, known: HostCapabilities | None) -> Self:
        """Return it with the options that suit its capabilities."""
        return self

    def require_ready(self) -> None:  # noqa: B027 - most are
        """Raise `ServerUnavailableError` if no further session may be opened now."""

    def answering(self) -> AbstractContextManager[None]:
        """Return a context that explains why a worker gives no reply in it."""
        return nullcontext()
