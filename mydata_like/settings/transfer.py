"""Settings of how bytes travel to the staging area."""

from collections.abc import Iterator
from typing import Annotated, Literal

from mydata_like.settings.about import About
from mydata_like.settings.reading import Between
from mydata_like.settings.section import Section
from mydata_like.settings.values import Cipher, Fingerprint, Jump, OptionalPath, once_each


def _check_ciphers(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        raise ValueError("must name at least one cipher")
    return once_each("cipher")(names)


class Transfer(Section):
    """How bytes travel to the staging area."""

    method: Annotated[
        Literal["auto", "ssh", "http"],
        About(
            "Upload method",
            "Whether to send over SSH, over HTTP, or over SSH as soon as it is approved.",
            legacy=("upload_method",),
        ),
    ] = "auto"
    ssh: Annotated[
        Literal["auto", "libssh", "paramiko"],
        About(
            "SSH implementation",
            "Which implementation of SSH to use; the fastest one that works when automatic.",
            former=(("system", "paramiko"),),
        ),
    ] = "auto"
    ssh_jump: Annotated[
        tuple[Jump, ...],
        once_each("host"),
        About(
            "Jump hosts",
            "The hosts through which the staging host is reached, first one first, each as "
            "user@host:port; user and port may be left out.",
        ),
    ] = ()
    ssh_agent: Annotated[
        bool,
        About(
            "SSH agent",
            "Whether an SSH agent may hold the uploader's key, and keys for the jump hosts; "
            "sessions with such keys use paramiko.",
        ),
    ] = False
    channels: Annotated[
        int,
        Between(0, 32),
        About(
            "Channels",
            "How many transfers run at once; 0 finds a good number by itself.",
            legacy=("max_upload_threads",),
        ),
    ] = 0
    ciphers: Annotated[
        tuple[Cipher, ...],
        _check_ciphers,
        About(
            "Ciphers",
            "The SSH ciphers to offer, best first; only modern ones are allowed.",
            legacy=("cipher",),
        ),
    ] = (
        "aes128-gcm@openssh.com",
        "aes256-gcm@openssh.com",
        "aes128-ctr",
        "chacha20-poly1305@openssh.com",
    )
    host_keys: Annotated[
        tuple[Fingerprint, ...],
        once_each("fingerprint"),
        About(
            "Trusted host keys",
            "Fingerprints (SHA256:...) of the keys of staging hosts and jump hosts, as their "
            "administrator gives them. A listed key is trusted without asking; where there are "
            "any, the keys that the server names for the staging hosts do not count.",
        ),
    ] = ()
    key_file: Annotated[
        OptionalPath,
        About(
            "Private key",
            "The uploader's private SSH key when it is not the one made at the first start.",
        ),
    ] = None
    compression: Annotated[
        Literal["auto", "never"],
        About(
            "Compression",
            "Whether to compress on the way, by zstd: by itself where the connection is what "
            "limits the speed, the staging host has zstd and the data shrink, or never.",
        ),
    ] = "auto"
    find_zeros: Annotated[
        bool,
        About(
            "Leave out zeros",
            "Whether to look for long runs of zeros in files that travel alone and have no holes, "
            "and to leave them out, as holes are: the file on the server has holes in their place. "
            "With a shell, a file that is half zeros or more is read twice for it, and begins anew "
            "after a broken connection.",
        ),
    ] = False
    connect_timeout: Annotated[
        float,
        Between(0.1, 600),
        About(
            "Connection timeout",
            "How long to wait for a staging host to accept a connection.",
            unit="s",
        ),
    ] = 10.0
    stall_timeout: Annotated[
        float,
        Between(0.1, 3600),
        About(
            "Stall timeout",
            "How long a transfer may make no progress before its connection is given up.",
            unit="s",
        ),
    ] = 60.0
    attempts: Annotated[
        int,
        Between(1, 100),
        About(
            "Attempts",
            "How often a transfer is tried in one run before its files count as failed.",
            legacy=("max_upload_retries",),
        ),
    ] = 5
    batch_below: Annotated[
        int,
        Between(0, 64 * 1024 * 1024),
        About(
            "Batch files below",
            "Files smaller than this travel together; 0 sends each file alone.",
            unit="bytes",
        ),
    ] = 8 * 1024 * 1024
    batch_bytes: Annotated[
        int,
        Between(1, 1024 * 1024 * 1024),
        About("Batch size", "A batch is sent off when it holds this much.", unit="bytes"),
    ] = 16 * 1024 * 1024
    batch_files: Annotated[
        int,
        Between(1, 10_000),
        About("Files in a batch", "A batch is sent off when it holds this many files."),
    ] = 1000
    batch_age: Annotated[
        float,
        Between(0, 60),
        About("Batch age", "A batch is sent off when its first file has waited so long.", unit="s"),
    ] = 2.0

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.ssh_agent and self.ssh == "libssh" and not self.ssh_jump:
            yield "ssh_agent", 'is of no use where transfer.ssh is "libssh"'
