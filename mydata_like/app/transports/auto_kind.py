"""Uploads over SSH as soon as that is approved, and over HTTP until then."""

from collections.abc import Iterator

from mydata_like.app.transports.connection_steps import TestStep
from mydata_like.app.transports.http_kind import describe_http_only, open_http
from mydata_like.app.transports.ssh_kind import SshKind, require_admitted
from mydata_like.app.transports.transport_access import TransportAccess
from mydata_like.core.errors import NotApprovedError, Problem
from mydata_like.core.events import Notice
from mydata_like.core.ports import Transport


class AutoKind(SshKind):
    """Requests approval for SSH; until it is given, files are sent over HTTP."""

    def open(self, access: TransportAccess) -> tuple[Transport, str]:
        try:
            area = access.approval.request()
            require_admitted(access, area)
        except NotApprovedError as error:
            message = f"{error.message} Until then, files are sent over HTTP, which is slower."
            access.emit(Notice(problem=Problem(error.problem_code, message, error.hint)))
            return open_http(access, None), ""
        return self.open_area(access, area)

    def test(self, access: TransportAccess) -> Iterator[TestStep]:
        if area := access.find_area():
            yield from self.test_approved(access, area)
        else:
            yield describe_http_only(access, None)
