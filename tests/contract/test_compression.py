"""Compressing what is sent, over a real SSH server with and without zstd."""

from pathlib import Path

import pytest

from mydata_like.core.model import Payload
from mydata_like.core.ports import SentFile
from tests.fakes.place import checksum
from tests.openssh import on_host, which
from tests.sshd_fixture import needs_sshd, script, with_programs
from tests.staging import Staging, single, wanted

pytestmark = [needs_sshd, pytest.mark.skipif(not which("zstd"), reason="needs zstd")]

MB = 1_000_000
TEXT = b"".join(b"%d;%d\n" % (n, n * n % 1013) for n in range(100_000))


def ignore(*_: int) -> None: ...


class Host(Staging):
    """A host that notes whenever its zstd is used, or that has none."""

    def __init__(self, directory: Path, *, has_zstd: bool) -> None:
        directory.mkdir()
        self.log = on_host(directory / "log")
        note = f'echo used >> {self.log}\nexec {which("zstd")} "$@"\n'
        programs = {name: which(name) for name in ("tar", "md5sum")}
        if has_zstd:
            programs["zstd"] = script(directory / "zstd", note)
        super().__init__(directory, options=with_programs(directory, **programs))

    @property
    def used(self) -> int:
        """How often zstd was used, not counting the probe."""
        return len(self.log.read_text().split()) - 1 if self.log.exists() else 0


@pytest.fixture
def host(tmp_path, has_zstd):
    with Host(tmp_path / "host", has_zstd=has_zstd) as host:
        yield host


def open_limited(transport, place):
    """Return a channel that has learned how slow its line is, and the limit that makes it so."""
    noise = place.write("a/noise", 13 * MB // 10)
    place.settle(noise)
    channel = transport.open_channel()
    channel.limit(1 * MB)
    assert channel.send(single(noise), ignore) == [SentFile(0, checksum(noise))]
    return channel


@pytest.mark.parametrize(
    ("stack", "has_zstd"),
    [("libssh", True), ("paramiko", True), ("libssh", False)],
)
def test_on_a_slow_line_text_is_compressed_where_the_host_unpacks(place, host, stack, has_zstd):
    large = place.write("a/large", len(TEXT), TEXT)
    small = [place.write(f"a/{n}", 100_000, TEXT[n:][:100_000]) for n in range(8)]
    place.settle(large, *small)
    transport = host.build(place.location, ssh=stack)
    try:
        channel = open_limited(transport, place)
        assert host.used == 0
        assert channel.send(single(large), ignore) == [SentFile(0, checksum(large))]
        assert host.used == (1 if has_zstd else 0)
        sent = channel.send(Payload(2, tuple(map(wanted, small)), batched=True), ignore)
        assert sent == [SentFile(n, checksum(member)) for n, member in enumerate(small)]
        assert host.used == (2 if has_zstd else 0)
    finally:
        transport.close()
    assert all(map(place.arrived, [large, *small]))


@pytest.mark.parametrize("has_zstd", [True])
def test_on_a_slow_line_the_first_file_is_compressed(place, host):
    text = place.write("a/text", 2 * MB, TEXT * 3)
    place.settle(text)
    transport = host.build(place.location)
    try:
        channel = transport.open_channel()
        channel.limit(2 * MB)
        assert channel.send(single(text), ignore) == [SentFile(0, checksum(text))]
        assert host.used == 1
    finally:
        transport.close()
    assert place.arrived(text)


@pytest.mark.parametrize("has_zstd", [True])
def test_nothing_is_compressed_where_the_settings_forbid_it(place, host):
    large = place.write("a/large", len(TEXT), TEXT)
    place.settle(large)
    transport = host.build(place.location, compression="never")
    try:
        assert open_limited(transport, place).send(single(large), ignore)[0].checksum
        assert host.used == 0
    finally:
        transport.close()
