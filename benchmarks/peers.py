"""The peers: scp, sftp, lftp, tar over ssh, rsync and rclone, with well-tuned options."""

import shlex
import subprocess
from functools import cache
from pathlib import Path

from benchmarks.arena import CIPHER, Arena
from benchmarks.contest import Entrant, Peer
from benchmarks.measure import Command

_SCP_MODES = {"sftp mode": ["-s"], "scp protocol": ["-O"]}


def scp(streams: int, mode: str, cipher: str | None = CIPHER) -> Peer:
    """Several `scp` in parallel, each with its share of the files; they verify nothing."""
    cipher_name = "default cipher" if cipher is None else "aes128-gcm"
    entrant = Entrant(f"scp x{streams}, {mode}, {cipher_name}", "scp", "", ("scp",))

    def commands(arena: Arena) -> list[Command]:
        return [
            [*_scp(arena, mode, cipher), *_paths(arena, share), _there(arena)]
            for share in arena.shares(streams)
        ]

    return Peer(entrant, commands)


def scp_compressed(streams: int) -> Peer:
    """Several `scp -C` in parallel."""
    entrant = Entrant(f"scp -C x{streams}", "scp -C", "", ("scp",))

    def commands(arena: Arena) -> list[Command]:
        # ssh uses the first value of an option, and the arena's options disable compression.
        scp = ["scp", "-C", *_scp(arena, "scp protocol", CIPHER)[1:]]
        return [[*scp, *_paths(arena, share), _there(arena)] for share in arena.shares(streams)]

    return Peer(entrant, commands)


def md5sum_scp(streams: int) -> Peer:
    """`md5sum` of every file, then `scp`: the same work as ours in two passes."""
    entrant = Entrant(f"md5sum, then scp x{streams}", "md5sum+scp", "source MD5", ("md5sum", "scp"))

    def commands(arena: Arena) -> list[Command]:
        return [_hash_then_copy(arena, share) for share in arena.shares(streams)]

    return Peer(entrant, commands)


def md5sum_cp(streams: int) -> Peer:
    """`md5sum` of every file, then `cp` to a folder, and `sync` of it: our work in two passes."""
    entrant = Entrant(f"md5sum, then cp x{streams}", "md5sum+cp", "source MD5", ("md5sum", "cp"))

    def commands(arena: Arena) -> list[Command]:
        return [
            _hash_then_cp(arena, arena.write_list(f"cp-{number}", share))
            for number, share in enumerate(arena.shares(streams))
        ]

    return Peer(entrant, commands)


def rsync_here(options: str = "-aW") -> Peer:
    """`rsync` to a folder, without ssh, and `sync` of it."""
    entrant = Entrant(f"rsync {options} to a folder", "rsync", "its stream", ("rsync",))

    def commands(arena: Arena) -> list[Command]:
        copy = ["rsync", options, f"{arena.corpus.root}/", str(arena.target)]
        return [["sh", "-c", f"{shlex.join(copy)} && {_sync(arena)}"]]

    return Peer(entrant, commands)


def by_hand(streams: int, copy: str) -> Peer:
    """`md5sum` of every file, a copy by scp, tar or rsync, and `md5sum -c` on the other side."""
    entrant = Entrant(
        f"md5sum, {copy} x{streams}, md5sum there", "by hand", "MD5 of both sides", ("md5sum", copy)
    )

    def commands(arena: Arena) -> list[Command]:
        return [
            _check_by_hand(arena, copy, share, arena.write_list(f"hand-{number}", share))
            for number, share in enumerate(arena.shares(streams))
        ]

    return Peer(entrant, commands)


def mscp(connections: int) -> Peer:
    """`mscp` (github.com/upa/mscp), which sends parts of files over several SFTP sessions."""
    entrant = Entrant(f"mscp, {connections} connections", "mscp", "", ("mscp",))

    def commands(arena: Arena) -> list[Command]:
        link = arena.link
        config = arena.directory / "mscp_config"
        config.write_text(
            f"Host {link.host}\nUserKnownHostsFile {link.known_hosts}\nStrictHostKeyChecking yes\n"
        )
        options = [
            *("-q", "-n", str(connections), "-c", CIPHER, "-F", str(config)),
            *("-P", str(link.port), "-i", str(link.key_file), "-l", link.username),
        ]
        folders = _paths(arena, arena.corpus.folders)
        return [["mscp", *options, *folders, f"{link.host}:{arena.target}/"]]

    return Peer(entrant, commands)


def scp_folders(mode: str) -> Peer:
    """One `scp -r` of the whole tree."""
    entrant = Entrant(f"scp -r, {mode}", "scp -r", "", ("scp",))

    def commands(arena: Arena) -> list[Command]:
        folders = _paths(arena, arena.corpus.folders)
        return [[*_scp(arena, mode, CIPHER), "-r", *folders, _there(arena)]]

    return Peer(entrant, commands)


def sftp() -> Peer:
    """One `sftp -b` with a batch of `put` commands."""
    entrant = Entrant("sftp -b", "sftp", "", ("sftp",))

    def commands(arena: Arena) -> list[Command]:
        puts = [
            f'put -pr "{path}" "{arena.target}/"' for path in _paths(arena, arena.corpus.folders)
        ]
        batch = arena.write_list("sftp", puts)
        return [["sftp", *arena.link.options(), "-q", "-b", str(batch), arena.link.destination]]

    return Peer(entrant, commands)


def lftp(parallel: int) -> Peer:
    """`lftp mirror -R` over SFTP, several files in parallel."""
    entrant = Entrant(f"lftp mirror, {parallel} at once", "lftp", "", ("lftp", "ssh"))

    def commands(arena: Arena) -> list[Command]:
        link = arena.link
        program = shlex.join([*link.ssh(), "-a", "-x"])
        script = (
            f'set cmd:fail-exit yes; set net:max-retries 1; set sftp:connect-program "{program}"; '
            f"open -u {link.username}, sftp://{link.host}:{link.port}; "
            f'mirror -R --parallel={parallel} "{arena.corpus.root}/" "{arena.target}/"'
        )
        return [["lftp", "--norc", "-c", script]]

    return Peer(entrant, commands)


def tar(streams: int, *, sparse: bool = False) -> Peer:
    """`tar | ssh tar`, as one stream or distributed over several."""
    family = "tar" if streams == 1 else "tar, several"
    sparsely = ["-S"] if sparse else []
    name = " ".join(["tar", *sparsely, f"| ssh tar x{streams}"])
    entrant = Entrant(name, family, "", ("tar", "ssh"))

    def commands(arena: Arena) -> list[Command]:
        pack = ["tar", "-C", str(arena.corpus.root), *sparsely, "-cf", "-"]
        if streams == 1:
            return [arena.pipe_tar([*pack, "."])]
        lists = [
            arena.write_list(f"stream-{number}", share)
            for number, share in enumerate(arena.shares(streams))
        ]
        return [arena.pipe_tar([*pack, "-T", str(path)]) for path in lists]

    return Peer(entrant, commands)


def tar_compressed() -> Peer:
    """`tar | ssh tar` with zstd on both sides."""
    entrant = Entrant("tar --zstd | ssh tar --zstd", "tar --zstd", "", ("tar", "ssh", "zstd"))

    def commands(arena: Arena) -> list[Command]:
        pack = ["tar", "-C", str(arena.corpus.root), "--zstd", "-cf", "-", "."]
        return [arena.pipe_tar(pack, "--zstd")]

    return Peer(entrant, commands)


def rsync(options: str = "-aW") -> Peer:
    """`rsync`; with `-W` whole files and no comparison of contents."""
    entrant = Entrant(f"rsync {options}", "rsync", "its stream", ("rsync", "ssh"))

    def commands(arena: Arena) -> list[Command]:
        ssh = shlex.join(arena.link.ssh())
        return [["rsync", options, "-e", ssh, f"{arena.corpus.root}/", _there(arena)]]

    return Peer(entrant, commands)


def rsync_twice() -> Peer:
    """`rsync -a`, and a dry run with `-c` that compares the checksums of both sides."""
    entrant = Entrant(
        "rsync -a, then rsync -anc", "rsync, proven", "checksums of both sides", ("rsync", "ssh")
    )

    def commands(arena: Arena) -> list[Command]:
        paths = ["-e", shlex.join(arena.link.ssh()), f"{arena.corpus.root}/", _there(arena)]
        copy, compare = (
            shlex.join(["rsync", *options, *paths])
            for options in (["-a"], ["-anc", "--itemize-changes"])
        )
        return [["sh", "-c", f'{copy} && differing=$({compare}) && test -z "$differing"']]

    return Peer(entrant, commands)


def rclone(transfers: int) -> Peer:
    """`rclone copy` to its sftp backend, tuned: large requests in parallel, no hash commands."""
    return _rclone(
        f"rclone, {transfers} transfers, tuned",
        *("--transfers", str(transfers), "--checkers", "8", "--no-check-dest"),
        *("--sftp-concurrency", "128", "--sftp-chunk-size", "255Ki"),
        *("--sftp-disable-hashcheck", "--multi-thread-streams", str(transfers)),
        *("--buffer-size", "16Mi"),
    )


def rclone_default() -> Peer:
    """`rclone copy` with default options; the server computes checksums if possible."""
    return _rclone("rclone, default", checks="MD5 there")


def _rclone(name: str, *options: str, checks: str = "") -> Peer:
    def commands(arena: Arena) -> list[Command]:
        copy = ["rclone", "copy", str(arena.corpus.root), f":sftp:{arena.target}"]
        return [[*copy, *_rclone_link(arena), *options, "--retries", "1", "--quiet"]]

    return Peer(Entrant(name, "rclone", checks, ("rclone",)), commands)


def rclone_knows(option: str) -> bool:
    """Return whether this rclone has an option; older ones have none for ciphers."""
    return f"{option} " in _rclone_options()


@cache
def _rclone_options() -> str:
    command = ["rclone", "help", "flags"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _rclone_link(arena: Arena) -> list[str]:
    link = arena.link
    options = [
        *("--config", "/dev/null", "--sftp-host", link.host, "--sftp-port", str(link.port)),
        *("--sftp-user", link.username, "--sftp-key-file", str(link.key_file)),
        *("--sftp-known-hosts-file", str(link.known_hosts), "--sftp-shell-type", "unix"),
    ]
    # Without the option, rclone prefers the same cipher.
    return options + (["--sftp-ciphers", CIPHER] if rclone_knows("--sftp-ciphers") else [])


def _scp(arena: Arena, mode: str, cipher: str | None) -> list[str]:
    return ["scp", "-q", "-p", *_SCP_MODES[mode], *arena.link.options(cipher)]


def _hash_then_copy(arena: Arena, share: list[str]) -> Command:
    paths = _paths(arena, share)
    copy = [*_scp(arena, "scp protocol", CIPHER), *paths, _there(arena)]
    return ["sh", "-c", f"{shlex.join(['md5sum', *paths])} > /dev/null && {shlex.join(copy)}"]


def _hash_then_cp(arena: Arena, names: Path) -> Command:
    """Return a command that hashes files and copies them, with their folders, and syncs them.

    `cp --parents` fails if another one makes the same folder at that moment.
    """
    steps = [
        f"cd {arena.corpus.root}",
        f"xargs md5sum < {names} > /dev/null",
        f"find . -type d | (cd {arena.target} && xargs mkdir -p)",
        f"xargs cp -p --parents -t {arena.target} < {names}",
        _sync(arena),
    ]
    return ["sh", "-c", " && ".join(steps)]


def _sync(arena: Arena) -> str:
    return shlex.join(["sync", "-f", str(arena.target)])


def _check_by_hand(arena: Arena, copy: str, share: list[str], names: Path) -> Command:
    """Return a command that hashes files, copies them, and compares their checksums there."""
    ssh = shlex.join([*arena.link.ssh(), arena.link.destination])
    received = f"cat {names}.md5"
    match copy:
        case "scp":  # puts all files into one folder
            carry = [*_scp(arena, "scp protocol", CIPHER), *_paths(arena, share), _there(arena)]
            received = f"sed 's|  .*/|  |' {names}.md5"
        case "tar":
            carry = arena.pipe_tar(["tar", "-cf", "-", "-T", str(names)])
        case _:
            options = ["-aW", f"--files-from={names}", "-e", shlex.join(arena.link.ssh())]
            carry = ["rsync", *options, ".", _there(arena)]
    steps = [
        f"cd {arena.corpus.root}",
        f"xargs md5sum < {names} > {names}.md5",
        shlex.join(carry),
        f"{received} | {ssh} 'cd {arena.target} && md5sum --quiet -c -'",
    ]
    return ["sh", "-c", " && ".join(steps)]


def _paths(arena: Arena, below: tuple[str, ...] | list[str]) -> list[str]:
    return [f"{arena.corpus.root}/{path}" for path in below]


def _there(arena: Arena) -> str:
    return f"{arena.link.destination}:{arena.target}/"
