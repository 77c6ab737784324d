"""A real sshd behind a TCP proxy, for tests of faulty connections."""

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
