"""A file whose folder has become a link since the scan is reported, by each way of sending.

The folder has been moved out of the data directory, and a link to it left behind: the file is the
very one that the scan saw, yet it lies outside now.
"""

import os
from threading import Event

import pytest

from mydata_like.catalogues.mytardis.client import ApiClient
from mydata_like.catalogues.mytardis.http_upload import HttpTransport
from mydata_like.core.errors import FileChangedError
from mydata_like.core.local_files import ArchiveMember
from mydata_like.core.model import Dataset, DatasetId, FileRecord, Layout, Payload
from mydata_like.engine.scan import Scan
from mydata_like.hostos.clock import SystemClock
from mydata_like.settings.schema import Data, Server, Settings
from mydata_like.transfer.archive_writer import TINY, open_content
from mydata_like.transfer.channel import describe_member
from mydata_like.transfer.file_source import read_checksum
from mydata_like.transfer.ssh.multi_stream import LARGE
from tests.fakes.clock import FakeClock
from tests.fakes.place import MODIFIED
from tests.fakes.web import web_server
from tests.privileges import needs_links, needs_shell
from tests.unit.transfer.ssh import (
    test_batch_sender,
    test_multi_stream,
    test_multi_stream_sftp,
    test_single_file,
)

pytestmark = needs_links

DATASET = Dataset(DatasetId(7), "Set 1")
SMALL = 1000


@pytest.fixture
def scanned(place):
    """Return a function that has a scan find a file and then moves its folder out."""

    def find(size):
        folder = place.source / "Set 1"
        folder.mkdir()
        with (folder / "file").open("wb") as file:
            file.truncate(size)
            file.write(b"these bytes are not for others")
        os.utime(folder / "file", (MODIFIED, MODIFIED))
        settings = Settings(data=Data(layout=Layout.DATASET))
        groups = Scan(settings, [].append, SystemClock(), Event()).scan(place.source)
        (found,) = [file for group in groups for file in group.files]
        place.settle(member_of(found))
        folder.rename(place.source.parent / "outside")
        folder.symlink_to("../outside")
        return found

    return find


def member_of(file):
    return describe_member(FileRecord(file, DATASET, "Set%201-7/file"))


def send_batch(place, file, **options):
    return test_batch_sender.send(place, [member_of(file)], **options).results[0]


def send_whole(place, file):
    return test_single_file.send(place, member_of(file))


def send_striped(place, file):
    return test_multi_stream.send(place, member_of(file), test_multi_stream.FarSession())


def send_by_scp(place, file):
    return test_single_file.send_by_scp(place, member_of(file))[0]


def send_by_sftp(place, file):
    return test_multi_stream_sftp.send(place, member_of(file), test_multi_stream_sftp.SftpOnly())


def send_striped_by_sftp(place, file):
    return test_multi_stream_sftp.send(place, member_of(file), test_multi_stream_sftp.far())


WAYS = {
    "tar, tiny": (send_batch, SMALL),
    "tar, small": (send_batch, TINY + 1),
    "whole": (send_whole, SMALL),
    "whole with holes": (send_whole, 20 << 20),
    "striped": (send_striped, LARGE),
    "scp": (send_by_scp, SMALL),
    "sftp, tiny": (send_by_sftp, SMALL),
    "sftp": (send_by_sftp, TINY + 1),
    "sftp, striped": (send_striped_by_sftp, LARGE),
}


@pytest.mark.process
@needs_shell
@pytest.mark.parametrize(("send", "size"), WAYS.values(), ids=WAYS)
def test_no_way_sends_it(place, scanned, send, size):
    file = scanned(size)

    fate = send(place, file)

    assert (fate.checksum, fate.problem.code) == ("", "file.replaced")
    assert not [path for path in place.location.rglob("*") if path.is_file()]


def test_http_sends_nothing_of_it(place, scanned):
    clock = FakeClock()
    with web_server() as web:
        client = ApiClient(Server(url=web.url, username="facility"), "key", clock, clock.cancel())
        transport = HttpTransport(client, lambda wanted: open_content(describe_member(wanted)))
        wanted = FileRecord(scanned(SMALL), DATASET, "remote")
        (fate,) = transport.open_channel().send(
            Payload(1, (wanted,), batched=False), lambda _: None
        )
        client.close()

    assert fate.problem.code == "file.replaced"
    assert not [asked for asked in web.asked if b"not for others" in asked.body]


def test_an_archive_has_nothing_of_it(place, scanned):
    small = scanned(SMALL)
    wanted = FileRecord(small, DATASET, "Set%201-7/Set 1.tar")
    inside = (ArchiveMember(small, b"Set 1/file"),)

    with open_content(describe_member(wanted)._replace(inside=inside)) as source:
        content = b"".join(bytes(chunk) for chunk in source.chunks(bytearray(1 << 16)))

    assert [reading.problem.code for reading in source.inside] == ["file.replaced"]
    assert b"not for others" not in content


def test_its_checksum_is_not_taken(scanned):
    with pytest.raises(FileChangedError) as refusal:
        read_checksum(scanned(SMALL), lambda: None)

    assert refusal.value.problem_code == "file.replaced"
