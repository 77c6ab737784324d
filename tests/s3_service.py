"""A real S3 service that keeps objects as files, where `make s3-hosts` has built it."""

import shutil
import socket
import subprocess
import time
from contextlib import closing
from pathlib import Path

from mydata_like.transfer.s3_client import Bucket, S3Options, open_client
from tests.fakes.objects import ACCOUNT, BUCKET, SECRET

PROGRAM = shutil.which("versitygw", path=f"{Path(__file__).parents[1] / '.venv/bin'}:/usr/bin")
REASON = "needs an S3 service: make s3-hosts"


class S3Service:
    """The service in a process of its own; a context manager. `kill` and `start` are a crash."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = _find_port()
        self.url = f"http://127.0.0.1:{self.port}"
        (folder / "objects").mkdir(parents=True)

    def start(self) -> None:
        command = [
            PROGRAM,
            "--quiet",
            "--keep-alive",
            "--port",
            f"127.0.0.1:{self.port}",
            "--region",
            "us-east-1",
        ]
        command += ["--access", ACCOUNT, "--secret", SECRET, "posix", str(self.folder / "objects")]
        self._log = (self.folder / "log").open("ab")
        self._process = subprocess.Popen(command, stdout=self._log, stderr=self._log)
        deadline = time.monotonic() + 30
        while not _listens(self.port):
            assert self._process.poll() is None, (self.folder / "log").read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)

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


def _find_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        return listener.getsockname()[1]


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
