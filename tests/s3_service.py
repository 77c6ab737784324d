"""Real S3 services that keep objects as files, where `make s3-hosts` has built them."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from socket import create_server
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest

from mydata_like.transfer.s3.s3_client import Bucket, S3Options, open_client
from tests.fakes.objects import ACCOUNT, BUCKET, SECRET, ObjectServer

PROGRAMS = ("versitygw", "minio")
FOLDERS = f"{Path(__file__).parents[1] / '.venv/bin'}:/usr/bin"
REASON = "needs an S3 service: make s3-hosts"


def find_program(name: str) -> str | None:
    return shutil.which(name, path=FOLDERS)


# Parameters of fixtures: the services, and with them the one in memory; see `open_service`.
REAL = [
    pytest.param(name, marks=pytest.mark.skipif(not find_program(name), reason=REASON))
    for name in PROGRAMS
]
SERVICES = ["memory", *REAL]


class S3Service:
    """A service in a process of its own; a context manager. `kill` and `start` are a crash."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.port = _find_port()
        self.url = f"http://127.0.0.1:{self.port}"
        (folder / "objects").mkdir(parents=True)

    def start(self) -> None:
        self._log = (self.folder / "log").open("ab")
        self._process = subprocess.Popen(
            [find_program(self.name), *self._options()],
            stdout=self._log,
            stderr=self._log,
            env=self._environment(),
        )
        deadline = time.monotonic() + 60
        while not _is_ready(self.url):
            assert self._process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def _options(self) -> Sequence[str]:
        address, objects = f"127.0.0.1:{self.port}", str(self.folder / "objects")
        if self.name == "minio":
            certificates = str(self.folder / "certificates")
            return ("server", "--address", address, "--certs-dir", certificates, objects)
        options = ("--quiet", "--keep-alive", "--port", address, "--region", "us-east-1")
        return (*options, "--access", ACCOUNT, "--secret", SECRET, "posix", objects)

    def _environment(self) -> dict[str, str]:
        return os.environ | {
            "MINIO_ROOT_USER": ACCOUNT,
            "MINIO_ROOT_PASSWORD": SECRET,
            "MINIO_BROWSER": "off",
            "MINIO_UPDATE": "off",
        }

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._log.close()

    def __enter__(self):
        self.start()
        client = open_client(self.bucket(), SECRET, S3Options())
        client.create_bucket(Bucket=BUCKET)
        client.close()
        return self

    def __exit__(self, *_):
        self.kill()

    def bucket(self) -> Bucket:
        return Bucket(name=BUCKET, endpoint=self.url, prefix="raw/scope 1", access_key=ACCOUNT)


@contextmanager
def open_service(name: str, folder: Path) -> Iterator[S3Service | ObjectServer]:
    """Run a service; `memory` is the one in memory."""
    with ObjectServer() if name == "memory" else S3Service(name, folder) as service:
        yield service


def _find_port() -> int:
    with closing(create_server(("127.0.0.1", 0))) as listener:
        return listener.getsockname()[1]


def _is_ready(url: str) -> bool:
    """Return whether the service answers; it refuses a request without an account."""
    try:
        urlopen(url).close()
    except HTTPError as error:
        error.close()
        return error.code != 503  # MinIO is starting
    except (URLError, ConnectionError):
        return False
    return True
