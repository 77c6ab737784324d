"""A real sshd behind a TCP proxy, and an embedded server with a client of it."""

import pytest

from mydata_like.demo.demo_server import EmbeddedServer
from tests.embedded import Api
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


@pytest.fixture
def server(tmp_path):
    with EmbeddedServer(tmp_path, verify_delay=0.01) as server:
        yield server


@pytest.fixture
def api(server):
    with Api(server) as api:
        api.prepare()
        yield api
