"""A staging host: what a session over SSH leads to."""

from dataclasses import replace
from functools import partial
from typing import Self

from mydata_like.core.frozen import frozen
from mydata_like.ssh.capabilities import HostCapabilities, confirm, probe
from mydata_like.ssh.connect import connect
from mydata_like.ssh.session import Endpoint, OpenSession
from mydata_like.transfer.destination import StagingDestination


@frozen()
class StagingHost(StagingDestination):
    """A host of the staging area, which is the directory `area` there."""

    endpoint: Endpoint
    area: bytes

    @property
    def host(self) -> str:
        return self.endpoint.host

    def suit(self, known: HostCapabilities | None) -> Self:
        """Return it with the implementation of SSH that the host is known to need."""
        if self.endpoint.stack == "auto" and known and known.gcm_only:
            return replace(self, endpoint=self.endpoint._replace(stack="paramiko"))
        return self

    def connect(
        self, known: HostCapabilities | None, *, confirms: bool
    ) -> tuple[OpenSession, HostCapabilities]:
        if known is None:
            return probe(partial(connect, self.endpoint), self.area)
        session = connect(self.endpoint)
        if confirms:
            confirm(session, self.area, known.access)
        return session, known

    def limit_opening(self, timeout: float) -> float:
        return self.endpoint.connect_timeout + 2 * timeout
