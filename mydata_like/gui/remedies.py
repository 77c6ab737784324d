"""Who can mend what, and how: one table from the codes of docs/events.md to one button."""

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple


class Mender(Enum):
    """Who can mend something."""

    YOU = "you"
    ADMINISTRATOR = "administrator"
    SERVER = "server"  # it recovers, and the program tries again by itself
    NOBODY = "nobody"  # nothing is broken


class Act(Enum):
    """What the one button beside a problem does."""

    TRY_AGAIN = "try again"
    START = "start"  # a run
    OPEN_FOLDER = "open folder"
    OPEN_SETTINGS = "open settings"
    SET_UP = "set up"  # shows the key's fingerprint, and registers
    WAIT = "wait"  # no button: it mends itself, or nothing is to be done here


class Remedy(NamedTuple):
    """Who can mend a problem, what the button does, and at which setting it opens them."""

    mender: Mender
    act: Act
    key: str = ""


# For what nobody has heard of.
UNKNOWN: Final = Remedy(Mender.YOU, Act.TRY_AGAIN)

_FILES: Final = {
    Remedy(Mender.NOBODY, Act.WAIT): (
        "waiting.settling waiting.archive waiting.compare file.changed file.replaced file.vanished"
        " skipped.ignored skipped.special skipped.symlink skipped.hidden run.stopping"
        " staging.moved run.paused"
    ),
    Remedy(Mender.YOU, Act.TRY_AGAIN): (
        "file.cancelled transfer.closed item.failed item.transient run.interrupted run.failed"
        " archive.changed-member"
    ),
    Remedy(Mender.YOU, Act.START): "waiting.unsent run.cut-off",
    Remedy(Mender.YOU, Act.OPEN_FOLDER): (
        "file.unreadable folder.unreadable waiting.future skipped.outside-dataset skipped.name"
        " name.unfit staging.name folder.same-dataset archive.name archive.unwritable"
    ),
    Remedy(Mender.YOU, Act.OPEN_SETTINGS, "filters.includes"): "skipped.pattern",
    Remedy(Mender.ADMINISTRATOR, Act.OPEN_SETTINGS, "filters.excludes"): "skipped.by-server",
    Remedy(Mender.YOU, Act.OPEN_SETTINGS, "filters.dataset"): "skipped.filtered",
    Remedy(Mender.YOU, Act.OPEN_SETTINGS, "filters.ignore_older_than"): "skipped.old",
    Remedy(Mender.YOU, Act.OPEN_SETTINGS, "filters.ignore_newer_than"): "skipped.young",
    Remedy(Mender.YOU, Act.OPEN_SETTINGS, "data.layout"): (
        "skipped.layout data.empty folder.unknown"
    ),
    Remedy(Mender.YOU, Act.OPEN_SETTINGS, "data.directory"): "data.unavailable",
    Remedy(Mender.ADMINISTRATOR, Act.OPEN_SETTINGS, "data.unknown_owners"): "skipped.owner",
    Remedy(Mender.ADMINISTRATOR, Act.TRY_AGAIN): (
        "item.rejected verify.failed archive.damaged archive.unreadable archive.no-member"
        " http.cannot-repair server.lost server.replacing"
    ),
}
_SERVER: Final = {
    Remedy(Mender.SERVER, Act.WAIT): (
        "verify.pending waiting.replacing server.unreachable server.unavailable server.slow"
        " server.busy server.error server.throttled server.connection-lost"
        " server.listing-unsteady register.unknown link.lost link.stalled channel.lost"
        " channel.stalled channel.dropped channel.closed channel.refused"
    ),
    Remedy(Mender.SERVER, Act.TRY_AGAIN): (
        "register.conflict staging.unproven staging.missing staging.protocol http.chunk"
        " server.elsewhere"
        " server.strange-answer server.duplicate server.not-found"
    ),
    Remedy(Mender.ADMINISTRATOR, Act.TRY_AGAIN): (
        "register.refused server.refused server.forbidden server.no-acl server.no-mydata"
        " staging.full staging.denied staging.refused staging.shell staging.incomplete"
        " staging.no-host staging.no-tar link.refused ssh.exec-refused ssh.sftp-refused"
        " server.made-twice"
    ),
    Remedy(Mender.YOU, Act.OPEN_SETTINGS, "server.username"): "server.denied",
    Remedy(Mender.YOU, Act.OPEN_SETTINGS, "server.url"): (
        "server.moved server.address server.web-page server.not-mytardis"
    ),
    Remedy(Mender.ADMINISTRATOR, Act.OPEN_SETTINGS, "server.ca_file"): (
        "server.certificate server.tls server.ca-file"
    ),
    Remedy(Mender.YOU, Act.OPEN_SETTINGS, "server.proxy"): "server.proxy",
    Remedy(Mender.ADMINISTRATOR, Act.SET_UP): (
        "uploader.not-approved uploader.not-admitted uploader.revoked uploader.expired"
        " uploader.expires ssh.key-refused host-key.changed"
    ),
    Remedy(Mender.YOU, Act.SET_UP): "host-key.unknown uploader.copied",
}
_HERE: Final = {
    Remedy(Mender.YOU, Act.SET_UP): "settings.no-key settings.no-keyring",
    Remedy(Mender.YOU, Act.OPEN_SETTINGS, "transfer.key_file"): (
        "key.exposed key.passphrase key.unreadable key.unusable key.elsewhere"
    ),
    Remedy(Mender.YOU, Act.OPEN_SETTINGS, "transfer.ssh"): (
        "ssh.no-agreement ssh.no-algorithm ssh.no-libssh settings.former"
    ),
    Remedy(Mender.YOU, Act.OPEN_SETTINGS, "transfer.ssh_agent"): "ssh.no-agent",
    Remedy(Mender.YOU, Act.OPEN_SETTINGS, "transfer.ciphers"): "transfer.ciphers",
    Remedy(Mender.YOU, Act.OPEN_SETTINGS): (
        "settings.invalid settings.toml settings.changed-elsewhere"
    ),
    Remedy(Mender.ADMINISTRATOR, Act.OPEN_SETTINGS): (
        "settings.locked settings.server-ignored settings.from-server"
    ),
    Remedy(Mender.YOU, Act.OPEN_SETTINGS, "advanced.state_directory"): (
        "ledger.failed ledger.newer lock.failed files.special"
    ),
    Remedy(Mender.NOBODY, Act.WAIT): (
        "ledger.damaged run.already-running limits.pressure limits.pressure-unknown files.exposed"
        " schedule.no-signs monitor.all-well"
    ),
    Remedy(Mender.NOBODY, Act.TRY_AGAIN): "ledger.outdated",
    Remedy(Mender.NOBODY, Act.OPEN_SETTINGS, "limits.quiet_hours"): "limits.quiet-hours",
    Remedy(Mender.NOBODY, Act.OPEN_SETTINGS, "limits.pause_while_running"): "limits.acquisition",
    Remedy(Mender.NOBODY, Act.OPEN_SETTINGS, "limits.bandwidth"): "limits.bandwidth",
    Remedy(Mender.NOBODY, Act.OPEN_SETTINGS, "schedule.kind"): "schedule.manual",
    Remedy(Mender.YOU, Act.TRY_AGAIN): (
        "monitor.nothing-ran monitor.silence monitor.unsafe window.engine-ended window.failed"
        " window.unresponsive window.impossible window.unwritable demo.sshd"
    ),
    Remedy(Mender.YOU, Act.OPEN_SETTINGS, "monitor.signal_url"): "monitor.no-signal",
    Remedy(Mender.YOU, Act.OPEN_SETTINGS, "monitor.notice_day"): "monitor.nothing-came",
    Remedy(Mender.ADMINISTRATOR, Act.TRY_AGAIN): "demo.no-sshd",
    Remedy(Mender.YOU, Act.OPEN_FOLDER): "source.gone source.special source.link",
    Remedy(Mender.YOU, Act.WAIT): (
        "source.inside source.holds-data source.name source.overlap source.later source.refused"
    ),
}
# For codes that are newer than the tables, by what they begin with. What is told of a command, or
# of a file that is not freed, is an answer: there is nothing to be mended.
_FAMILIES: Final = {
    Remedy(Mender.NOBODY, Act.WAIT): "command free waiting skipped limits schedule",
    Remedy(Mender.SERVER, Act.TRY_AGAIN): (
        "server register verify http staging link channel transfer"
    ),
    Remedy(Mender.YOU, Act.OPEN_SETTINGS): "settings ssh data",
    Remedy(Mender.YOU, Act.SET_UP): "key host-key uploader",
    Remedy(Mender.YOU, Act.OPEN_FOLDER): "source folder name support",
    UNKNOWN: "file files item archive run shard ledger lock monitor speed demo window",
}


def _by_code(*tables: Mapping[Remedy, str]) -> dict[str, Remedy]:
    return {
        code: remedy
        for table in tables
        for remedy, codes in table.items()
        for code in codes.split()
    }


REMEDIES: Final = _by_code(_FILES, _SERVER, _HERE)
FAMILIES: Final = _by_code(_FAMILIES)


def find_remedy(code: str) -> Remedy:
    """Return who can mend what has this code, and how."""
    return REMEDIES.get(code) or FAMILIES.get(code.partition(".")[0], UNKNOWN)
