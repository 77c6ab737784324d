"""The sections archive, limits and transfer."""

import re
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Annotated, Literal
from urllib.parse import urlsplit

from mydata_like.core.frozen import frozen
from mydata_like.core.patterns import PathPatterns
from mydata_like.settings.fields import Section, setting
from mydata_like.settings.schedule_section import parse_period, parse_speed
from mydata_like.settings.values import (
    CIPHERS,
    Cipher,
    Fingerprint,
    Jump,
    Line,
    OptionalPath,
    Range,
    Url,
    is_loopback,
    once_each,
)

LARGEST_MEMBER = 64_000_000
_LARGEST_ARCHIVE = 1_000_000_000_000
_BATCH_LIMITS = {"folder": 100, "s3": 25}  # with more, other channels would have nothing to do
_LONGEST_RULE = 1200  # characters; its pattern has at most 1000
_UNITS = {"bytes": 1, "byte": 1, "kb": 1_000, "mb": 1_000_000}
_RULE = re.compile(
    r"(?P<pattern>\S.*?)\s+below\s+(?P<size>\d{1,9}(?:\.\d{1,3})?)\s*(?P<unit>bytes?|[kK]B|MB)"
    r"(?:\s+from\s+(?P<files>\d{1,7})\s+files?)?(?:\s+by\s+(?P<scope>folder|dataset))?",
    re.ASCII,
)


class Scope(StrEnum):
    """The folder whose files share an archive: one folder, or a whole dataset folder."""

    FOLDER = "folder"
    DATASET = "dataset"


@frozen(eq=False)
class ArchiveRule:
    """A rule that keeps files that match `pattern` and are smaller than `below` bytes in archives.

    The pattern has the syntax of a .gitignore file and applies to the path below the data
    directory. The rule applies if at least `files` such files are in one scope.
    """

    pattern: PathPatterns
    below: int
    files: int
    scope: Scope


def parse_archive_rule(text: str) -> ArchiveRule:
    """Parse a rule; raises ValueError with an example of the syntax."""
    text = text.strip()
    if len(text) > _LONGEST_RULE:
        raise ValueError(f"must have at most {_LONGEST_RULE} characters")
    match = _RULE.fullmatch(text)
    if match is None:
        raise ValueError(
            'must be like "* below 100 kB", "*.dcm below 1 MB from 500 files by dataset"'
        )
    below = round(float(match["size"]) * _UNITS[match["unit"].lower()])
    if not 1 <= below <= LARGEST_MEMBER:
        raise ValueError(
            "must name a size from 1 byte to 64 MB, because archives are for tiny files"
        )
    files = int(match["files"] or 100)
    if not files:
        raise ValueError("must name at least 1 file")
    scope = Scope(match["scope"] or Scope.FOLDER)
    return ArchiveRule(_compile(match["pattern"]), below, files, scope)


def _compile(pattern: str) -> PathPatterns:
    try:
        patterns = PathPatterns([pattern])
    except ValueError:
        patterns = PathPatterns([])
    if not patterns.takes_some:
        raise ValueError(f"has a pattern that matches nothing: {pattern[:60]}")
    return patterns


def _check_rule(text: str) -> str:
    parse_archive_rule(text)
    return text.strip()


class Archive(Section):
    """Which tiny files are stored together on the server; see docs/archives.md."""

    rules: tuple[Annotated[Line, _check_rule], ...] = setting(
        "Archive rules",
        "Which files are stored in tar archives on the server instead of having one record "
        'each, such as "*.dcm below 1 MB from 500 files by dataset". The first rule that '
        "matches applies.",
        default=(),
        check=once_each("rule"),
    )
    size_limit: int = setting(
        "Archive size",
        "The largest size of an archive. Further files go into another archive.",
        default=250_000_000,
        check=Range(1_000_000, _LARGEST_ARCHIVE),
        unit="bytes",
    )


def _readable(parse: Callable[[str], object]) -> Callable[[str], str]:
    def check(text: str) -> str:
        parse(text)
        return text

    return check


class Limits(Section):
    """Limits that protect the instrument's own work."""

    bandwidth: float = setting(
        "Bandwidth",
        "The most that all channels together may send; 0 is no limit.",
        default=0.0,
        check=Range(0, 100_000),
        unit="MB/s (10^6 bytes)",
    )
    timetable: tuple[Annotated[Line, _readable(parse_speed)], ...] = setting(
        "Bandwidth timetable",
        'Periods with their own bandwidth in MB/s, in local time, such as "monday-friday '
        '09:00-17:00 5". The first one that contains the current time applies.',
        default=(),
        check=once_each("period"),
    )
    quiet_hours: tuple[Annotated[Line, _readable(parse_period)], ...] = setting(
        "Quiet hours",
        'Periods in local time, such as "monday-friday 09:00-17:00", in which '
        "nothing is sent. Transfers in progress wait, and continue afterwards.",
        default=(),
        check=once_each("period"),
    )
    low_priority: bool = setting(
        "Low priority",
        "Whether other programs have priority in the use of the processor and the disk.",
        default=True,
    )
    pause_while_running: tuple[Line, ...] = setting(
        "Pause while running",
        "Names or full paths of programs, such as acquire.exe. While one of them runs, "
        "nothing is sent.",
        default=(),
        check=once_each("program"),
    )
    pause_under_pressure: float = setting(
        "Pause under pressure",
        "The share of time in which other programs wait for disk or memory. Above it, "
        "nothing is sent; 0 never pauses.",
        default=0.0,
        check=Range(0, 100),
        unit="%",
    )
    keep_awake: bool = setting(
        "Keep awake",
        "Whether to prevent the computer from going to sleep while files are sent.",
        default=True,
    )


def _check_ciphers(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        raise ValueError("must name at least one cipher")
    return once_each("cipher")(names)


def _check_prefix(prefix: str) -> str:
    prefix = prefix.strip("/")
    if prefix and not {"", ".", ".."}.isdisjoint(prefix.split("/")):
        raise ValueError("must be like raw/microscopes")
    return prefix


class Transfer(Section):
    """How files are sent to the staging area."""

    method: Literal["auto", "ssh", "http", "folder", "s3"] = setting(
        "Upload method",
        "Whether to send over SSH, over HTTP, over SSH as soon as it is approved, to a "
        "mounted folder, or to object storage (S3).",
        default="auto",
        legacy=("upload_method",),
    )
    folder: OptionalPath = setting(
        "Staging folder",
        "The mounted folder that is the location of the approved storage box, for the upload "
        "method folder; such as /mnt/staging or \\\\server\\staging.",
        default=None,
    )
    s3_endpoint: Url = setting(
        "S3 address",
        "The address of the object storage, such as https://s3.example.org; empty for "
        "Amazon's, or that of the approved storage box.",
        default="",
    )
    s3_region: Line = setting(
        "S3 region",
        "The region of the bucket; empty for us-east-1, which most servers accept.",
        default="",
    )
    s3_bucket: Line = setting(
        "S3 bucket",
        "The bucket for the files; empty for the approved storage box's.",
        default="",
    )
    s3_prefix: Line = setting(
        "S3 prefix",
        "The beginning of all keys in the bucket, which is the storage box's location; empty "
        "for none, or that of the approved storage box.",
        default="",
        check=_check_prefix,
    )
    s3_box: Line = setting(
        "S3 storage box",
        "The name of the server's storage box for this bucket; empty for the approved one.",
        default="",
    )
    s3_access_key: Line = setting(
        "S3 access key",
        "The id of the access key. Its secret is stored separately from the settings.",
        default="",
    )
    ssh: Literal["auto", "libssh", "paramiko"] = setting(
        "SSH implementation",
        "Which implementation of SSH to use. Automatic uses the fastest one that works.",
        default="auto",
        former=(("system", "paramiko"),),
    )
    ssh_jump: tuple[Jump, ...] = setting(
        "Jump hosts",
        "The hosts through which the staging host is reached, in order, each as "
        "user@host:port; user and port are optional.",
        default=(),
        check=once_each("host"),
    )
    ssh_agent: bool = setting(
        "SSH agent",
        "Whether to use an SSH agent for the uploader's key and for keys of the jump hosts. "
        "Sessions with such keys use paramiko.",
        default=False,
    )
    channels: int = setting(
        "Channels",
        "How many transfers run concurrently; 0 finds a good number automatically.",
        default=0,
        check=Range(0, 32),
        legacy=("max_upload_threads",),
    )
    ciphers: tuple[Cipher, ...] = setting(
        "Ciphers",
        "The SSH ciphers to offer, in order of preference; only modern ones are allowed.",
        default=CIPHERS,
        check=_check_ciphers,
        legacy=("cipher",),
    )
    host_keys: tuple[Fingerprint, ...] = setting(
        "Trusted host keys",
        "Fingerprints (SHA256:...) of the keys of staging hosts and jump hosts, as given by "
        "their administrator. A listed key is trusted without a prompt. If any are listed, "
        "keys that the server names for the staging hosts are not trusted.",
        default=(),
        check=once_each("fingerprint"),
    )
    key_file: OptionalPath = setting(
        "Private key",
        "The uploader's private SSH key, if it is not the one created at the first start.",
        default=None,
    )
    compression: Literal["auto", "never"] = setting(
        "Compression",
        "Whether to compress data in transit with zstd. Automatic compresses if the network "
        "limits the speed, the staging host has zstd and the data compress well.",
        default="auto",
    )
    find_zeros: bool = setting(
        "Skip zeros",
        "Whether to search files that are sent alone and have no holes for long runs of "
        "zeros, and not to send these runs: the file on the server has holes in their "
        "place. With a shell on the staging host, a file that is at least half zeros is "
        "read twice, and starts again from its beginning after a lost connection.",
        default=False,
    )
    connect_timeout: float = setting(
        "Connection timeout",
        "How long to wait for a staging host to accept a connection.",
        default=10.0,
        check=Range(0.1, 600),
        unit="s",
    )
    stall_timeout: float = setting(
        "Stall timeout",
        "How long a transfer may make no progress before its connection is closed.",
        default=60.0,
        check=Range(0.1, 3600),
        unit="s",
    )
    attempts: int = setting(
        "Attempts",
        "How often a transfer is tried in one run before its files count as failed.",
        default=5,
        check=Range(1, 100),
        legacy=("max_upload_retries",),
    )
    batch_below: int = setting(
        "Batch files below",
        "Files smaller than this are sent together; 0 sends each file alone.",
        default=8 * 1024 * 1024,
        check=Range(0, 64 * 1024 * 1024),
        unit="bytes",
    )
    batch_bytes: int = setting(
        "Batch size",
        "A batch is sent when it has this size, or as much as is sent in ten seconds.",
        default=16 * 1024 * 1024,
        check=Range(1, 1024 * 1024 * 1024),
        unit="bytes",
    )
    batch_files: int = setting(
        "Files per batch",
        "A batch is sent when it has this many files: at most 100 to a mounted folder, and 25 "
        "to object storage.",
        default=1000,
        check=Range(1, 10_000),
    )
    batch_age: float = setting(
        "Batch age",
        "A batch is sent when its first file has waited this long.",
        default=2.0,
        check=Range(0, 60),
        unit="s",
    )

    @property
    def batch_limit(self) -> int:
        """The number of files in a batch: few where a channel sends them one after the other."""
        return min(self.batch_files, _BATCH_LIMITS.get(self.method, self.batch_files))

    @property
    def sends_unapproved(self) -> bool:
        """Whether files are sent in a slower way until the uploader is approved."""
        return self.method == "auto"

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.method == "folder" and self.folder is None:
            yield "folder", 'must be set if transfer.method is "folder"'
        if self.ssh_agent and self.ssh == "libssh" and not self.ssh_jump:
            yield "ssh_agent", 'has no effect if transfer.ssh is "libssh"'
        address = urlsplit(self.s3_endpoint)
        if address.scheme == "http" and not is_loopback(address.hostname or ""):
            yield "s3_endpoint", "must begin with https://"
        yield from find_unsupported(self, sys.platform)


def find_unsupported(transfer: Transfer, system: str) -> Iterator[tuple[str, str]]:
    """Yield settings that a system (`sys.platform`) does not support, and what to do instead."""
    if system == "win32" and transfer.ssh_agent:
        yield "ssh_agent", "cannot be used on Windows: use a key without a passphrase"
