"""A real sshd and what stands before it, for tests of links that do not behave."""

import pytest

from tests.faults.tcpproxy import TcpProxy
from tests.sshd_fixture import sshd_with


@pytest.fixture(scope="module")
def sshd(tmp_path_factory):
    with sshd_with(tmp_path_factory.mktemp("server")) as sshd:
        yield sshd


@pytest.fixture
def proxy(sshd):
    with TcpProxy(sshd.port) as proxy:
        yield proxy
