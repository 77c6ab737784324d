"""Every code of a problem: what it means, who can fix it, what the window offers for it.

A new code needs a row here and the place that raises it; then `make pages` writes the table of
docs/events.md. Messages and hints stay where they are raised: they name what it happened to.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final, NamedTuple


class Fixer(Enum):
    """Who can fix a problem."""

    USER = "the user"
    ADMINISTRATOR = "the administrator"
    SERVER = "the server, when it recovers"  # the program tries again automatically
    NOBODY = "nothing to fix"


class Action(Enum):
    """What the one button next to a problem does."""

    TRY_AGAIN = "Try again"
    START_RUN = "Start"
    OPEN_FOLDER = "Open folder"
    OPEN_SETTINGS = "Open settings"
    SET_UP = "Check key and approval"
    NOTHING = ""  # there is no button


class ProblemInfo(NamedTuple):
    """What is known of a code.

    `setting` is the key at which the settings open. `intended` says of a reason to skip whether
    the user wanted it, by a setting or because such files are no data; files that are skipped for
    another reason count as left behind. It is None where nothing is skipped.
    """

    meaning: str
    fixer: Fixer
    action: Action = Action.NOTHING
    setting: str = ""
    intended: bool | None = None


USER, ADMINISTRATOR, SERVER, NOBODY = Fixer
TRY_AGAIN, START_RUN, OPEN_FOLDER, OPEN_SETTINGS, SET_UP, _ = Action

PROBLEMS: Final[Mapping[str, ProblemInfo]] = {
    "file.changed": ProblemInfo(
        "The local file changed while it was read; the next run takes it.", NOBODY
    ),
    "file.replaced": ProblemInfo(
        "Another file took the place of the local file while it was read; the next run takes it.",
        NOBODY,
    ),
    "file.vanished": ProblemInfo("The local file was moved or deleted before it was read.", NOBODY),
    "file.unreadable": ProblemInfo("The system refuses to read the file.", USER, OPEN_FOLDER),
    "file.cancelled": ProblemInfo("The user wants the file left for a later run.", USER, TRY_AGAIN),
    "file.failed": ProblemInfo(
        "Files failed in a run, as the window reports in one notice; each has a code of its own.",
        USER,
        TRY_AGAIN,
    ),
    "folder.unreadable": ProblemInfo("The system refuses to read the folder.", USER, OPEN_FOLDER),
    "folder.same-dataset": ProblemInfo(
        "Two folders of a run would become one dataset.", USER, OPEN_FOLDER
    ),
    "folder.unknown": ProblemInfo(
        "A run over one folder found no dataset folder there.", USER, OPEN_SETTINGS, "data.layout"
    ),
    "waiting.unsent": ProblemInfo(
        "The file was found and not sent yet: only in the ledger, never in an event.",
        USER,
        START_RUN,
    ),
    "waiting.settling": ProblemInfo(
        "The file was modified a moment ago; a later run takes it.", NOBODY
    ),
    "waiting.future": ProblemInfo(
        "The file was modified in the future, by the clock here; a later run takes it.",
        USER,
        OPEN_FOLDER,
    ),
    "waiting.compare": ProblemInfo(
        "The server has a record of this name and size; a run reads the file once and compares "
        "its checksum, a dry run does not.",
        NOBODY,
    ),
    "waiting.replacing": ProblemInfo(
        "The server still vouches for the earlier bytes of a changed file; the new ones are "
        "stored next to them.",
        SERVER,
    ),
    "waiting.archive": ProblemInfo(
        "An archive on the server may hold the file; it can be read once it is verified.", NOBODY
    ),
    "skipped.filtered": ProblemInfo(
        "A folder is left out by the filters.",
        USER,
        OPEN_SETTINGS,
        "filters.dataset",
        intended=True,
    ),
    "skipped.layout": ProblemInfo(
        "A folder does not fit the layout.", USER, OPEN_SETTINGS, "data.layout", intended=False
    ),
    "skipped.old": ProblemInfo(
        "A folder is left out as it is too old.",
        USER,
        OPEN_SETTINGS,
        "filters.ignore_older_than",
        intended=True,
    ),
    "skipped.young": ProblemInfo(
        "A folder is left out as it is too new.",
        USER,
        OPEN_SETTINGS,
        "filters.ignore_newer_than",
        intended=True,
    ),
    "skipped.owner": ProblemInfo(
        "A folder belongs to an owner that the server does not know.",
        ADMINISTRATOR,
        OPEN_SETTINGS,
        "data.unknown_owners",
        intended=False,
    ),
    "skipped.hidden": ProblemInfo(
        "A folder is left out because its name begins with a dot.", NOBODY, intended=True
    ),
    "skipped.pattern": ProblemInfo(
        "A file is left out by your patterns.",
        USER,
        OPEN_SETTINGS,
        "filters.includes",
        intended=True,
    ),
    "skipped.ignored": ProblemInfo(
        "A file is left out by the default list.", NOBODY, intended=True
    ),
    "skipped.by-server": ProblemInfo(
        "A file or folder is left out by a filter that the server has set, so it counts as "
        "left behind.",
        ADMINISTRATOR,
        OPEN_SETTINGS,
        "filters.excludes",
        intended=False,
    ),
    "skipped.special": ProblemInfo("It is a pipe, socket or device.", NOBODY, intended=True),
    "skipped.symlink": ProblemInfo("It is a link.", NOBODY, intended=True),
    "skipped.outside-dataset": ProblemInfo(
        "A file lies in no dataset folder.", USER, OPEN_FOLDER, intended=False
    ),
    "skipped.name": ProblemInfo(
        "The server cannot hold the name.", USER, OPEN_FOLDER, intended=False
    ),
    "name.unfit": ProblemInfo("The server cannot hold the name.", USER, OPEN_FOLDER),
    "source.inside": ProblemInfo("The source lies in the data directory.", USER),
    "source.holds-data": ProblemInfo("The source holds the data directory.", USER),
    "source.gone": ProblemInfo("The source is away or cannot be read.", USER, OPEN_FOLDER),
    "source.link": ProblemInfo("The source is a link.", USER, OPEN_FOLDER),
    "source.special": ProblemInfo("The source is neither folder nor file.", USER, OPEN_FOLDER),
    "source.name": ProblemInfo("The server cannot hold a name that the source would get.", USER),
    "source.overlap": ProblemInfo(
        "The source lies in another source of the run, or holds it.", USER
    ),
    "source.later": ProblemInfo(
        "The run has carried the source already or is ending: the next one takes it.", USER
    ),
    "source.refused": ProblemInfo("The source cannot be carried.", USER),
    "source.unknown": ProblemInfo(
        "What is to be removed is no source that a run is to carry on with.", USER, OPEN_FOLDER
    ),
    "data.unavailable": ProblemInfo(
        "The data directory is away, or nothing is left of what earlier runs found in it.",
        USER,
        OPEN_SETTINGS,
        "data.directory",
    ),
    "data.empty": ProblemInfo(
        "The data directory holds nothing that fits the layout.", USER, OPEN_SETTINGS, "data.layout"
    ),
    "link.lost": ProblemInfo("The SSH connection broke.", SERVER),
    "link.stalled": ProblemInfo("The SSH connection went silent.", SERVER),
    "link.refused": ProblemInfo("The SSH connection could not be made.", ADMINISTRATOR, TRY_AGAIN),
    "channel.lost": ProblemInfo("A channel's process ended.", SERVER),
    "channel.stalled": ProblemInfo("A channel went silent.", SERVER),
    "channel.dropped": ProblemInfo("A channel was ended because of another channel.", SERVER),
    "channel.closed": ProblemInfo("A channel was closed.", SERVER),
    "channel.refused": ProblemInfo("A channel was not granted.", SERVER),
    "transfer.closed": ProblemInfo("The run ended while the file was on its way.", USER, TRY_AGAIN),
    "ssh.key-refused": ProblemInfo("The staging host refuses our key.", ADMINISTRATOR, SET_UP),
    "ssh.exec-refused": ProblemInfo("The staging host refuses commands.", ADMINISTRATOR, TRY_AGAIN),
    "ssh.sftp-refused": ProblemInfo("The staging host refuses SFTP.", ADMINISTRATOR, TRY_AGAIN),
    "ssh.no-agreement": ProblemInfo(
        "The staging host refuses all our algorithms.", USER, OPEN_SETTINGS, "transfer.ssh"
    ),
    "ssh.no-algorithm": ProblemInfo(
        "The chosen SSH implementation lacks all allowed algorithms.",
        USER,
        OPEN_SETTINGS,
        "transfer.ssh",
    ),
    "ssh.no-libssh": ProblemInfo(
        "The chosen SSH implementation, libssh, is missing.", USER, OPEN_SETTINGS, "transfer.ssh"
    ),
    "ssh.no-agent": ProblemInfo(
        "There is no SSH agent, or it does not answer.", USER, OPEN_SETTINGS, "transfer.ssh_agent"
    ),
    "host-key.unknown": ProblemInfo("The staging host's key is not trusted.", USER, SET_UP),
    "host-key.changed": ProblemInfo(
        "The staging host's key is not the one we know.", ADMINISTRATOR, SET_UP
    ),
    "staging.full": ProblemInfo("The staging area has no room.", ADMINISTRATOR, TRY_AGAIN),
    "staging.denied": ProblemInfo(
        "There is no right to write to the staging area.", ADMINISTRATOR, TRY_AGAIN
    ),
    "staging.refused": ProblemInfo(
        "The staging host allows nothing that we can speak.", ADMINISTRATOR, TRY_AGAIN
    ),
    "staging.cleaned": ProblemInfo(
        "What broken transfers of this uploader had left in the staging area for seven days "
        "was removed.",
        SERVER,
        TRY_AGAIN,
    ),
    "staging.unproven": ProblemInfo(
        "The staging host did not confirm a file, which is sent again.", SERVER, TRY_AGAIN
    ),
    "staging.protocol": ProblemInfo("The staging host answered strangely.", SERVER, TRY_AGAIN),
    "staging.shell": ProblemInfo(
        "A shell on the staging host answered strangely.", ADMINISTRATOR, TRY_AGAIN
    ),
    "staging.missing": ProblemInfo(
        "The staging host has lost what was laid aside.", SERVER, TRY_AGAIN
    ),
    "staging.flood": ProblemInfo("The staging host answered without end.", SERVER, TRY_AGAIN),
    "staging.incomplete": ProblemInfo(
        "The approved storage box lacks what is needed.", ADMINISTRATOR, TRY_AGAIN
    ),
    "staging.no-host": ProblemInfo(
        "The approved storage box names no host.", ADMINISTRATOR, TRY_AGAIN
    ),
    "staging.no-tar": ProblemInfo(
        "There is no tar on the staging host, so tiny files go one by one.",
        ADMINISTRATOR,
        TRY_AGAIN,
    ),
    "staging.moved": ProblemInfo(
        "The server names another staging area now, which the next run takes.", NOBODY
    ),
    "staging.name": ProblemInfo("The staging area cannot hold the name.", USER, OPEN_FOLDER),
    "register.refused": ProblemInfo("The server refused a record.", ADMINISTRATOR, TRY_AGAIN),
    "register.unknown": ProblemInfo("It is not known whether the server took a record.", SERVER),
    "register.conflict": ProblemInfo("Another program took the name.", SERVER, TRY_AGAIN),
    "register.lost": ProblemInfo(
        "The server says that it took a record, and has none.", SERVER, TRY_AGAIN
    ),
    "verify.failed": ProblemInfo(
        "The server's copy differs even after a second sending.", ADMINISTRATOR, TRY_AGAIN
    ),
    "verify.pending": ProblemInfo("The server has not compared its copy yet.", SERVER),
    "archive.damaged": ProblemInfo(
        "A file is no archive of ours, or a damaged one.", ADMINISTRATOR, TRY_AGAIN
    ),
    "archive.unreadable": ProblemInfo(
        "An archive, here or on the server, cannot be read.", ADMINISTRATOR, TRY_AGAIN
    ),
    "archive.no-member": ProblemInfo("An archive holds no such file.", ADMINISTRATOR, TRY_AGAIN),
    "archive.name": ProblemInfo(
        "A local file has the name of an archive on the server, which it must not replace.",
        USER,
        OPEN_FOLDER,
    ),
    "archive.unwritable": ProblemInfo(
        "A file cannot be taken out of an archive to where it should go.", USER, OPEN_FOLDER
    ),
    "archive.changed-member": ProblemInfo(
        "The bytes of a file in an archive are worthless, since it changed while it was read.",
        USER,
        TRY_AGAIN,
    ),
    "http.cannot-repair": ProblemInfo(
        "A changed file cannot be replaced over HTTP.", ADMINISTRATOR, TRY_AGAIN
    ),
    "http.chunk": ProblemInfo("The server refused a chunk.", SERVER, TRY_AGAIN),
    "server.unreachable": ProblemInfo("The server cannot be reached.", SERVER),
    "server.unavailable": ProblemInfo("The server or the network is away.", SERVER),
    "server.slow": ProblemInfo("The server took too long to answer.", SERVER),
    "server.busy": ProblemInfo("The server is too busy to answer.", SERVER),
    "server.error": ProblemInfo("The server failed.", SERVER),
    "server.throttled": ProblemInfo("The server asks for patience.", SERVER),
    "server.connection-lost": ProblemInfo("The server closed the connection.", SERVER),
    "server.unanswered": ProblemInfo(
        "The answer to a request that changes something was lost; it is sent again only when "
        "it can no longer be at work.",
        SERVER,
        TRY_AGAIN,
    ),
    "server.denied": ProblemInfo(
        "The server does not accept the account's key.", USER, OPEN_SETTINGS, "server.username"
    ),
    "server.forbidden": ProblemInfo(
        "The account may not do this one thing.", ADMINISTRATOR, TRY_AGAIN
    ),
    "server.refused": ProblemInfo("The server refuses this request.", ADMINISTRATOR, TRY_AGAIN),
    "server.not-found": ProblemInfo("There is no such thing on the server.", SERVER, TRY_AGAIN),
    "server.duplicate": ProblemInfo("The name is taken on the server.", SERVER, TRY_AGAIN),
    "server.elsewhere": ProblemInfo(
        "The server's copy has left the staging area.", SERVER, TRY_AGAIN
    ),
    "server.replacing": ProblemInfo(
        "The server's record is of newer bytes that never arrived.", ADMINISTRATOR, TRY_AGAIN
    ),
    "server.lost": ProblemInfo(
        "Records or copies that the server had verified are gone, differ, or are verified no "
        "more; files that are still here are sent or verified again.",
        ADMINISTRATOR,
        TRY_AGAIN,
    ),
    "server.made-twice": ProblemInfo(
        "Two uploaders made the same experiment or dataset at once; the older one is used, the "
        "other stays empty.",
        ADMINISTRATOR,
        TRY_AGAIN,
    ),
    "server.moved": ProblemInfo(
        "The server has another address.", USER, OPEN_SETTINGS, "server.url"
    ),
    "server.address": ProblemInfo(
        "The address of the server is wrong.", USER, OPEN_SETTINGS, "server.url"
    ),
    "server.web-page": ProblemInfo(
        "The address answers with a web page.", USER, OPEN_SETTINGS, "server.url"
    ),
    "server.not-mytardis": ProblemInfo(
        "The address is not that of a MyTardis.", USER, OPEN_SETTINGS, "server.url"
    ),
    "server.no-mydata": ProblemInfo("The MyTardis has no MyData app.", ADMINISTRATOR, TRY_AGAIN),
    "server.strange-answer": ProblemInfo(
        "An answer of the server makes no sense.", SERVER, TRY_AGAIN
    ),
    "server.strange-record": ProblemInfo(
        "A single record makes no sense; its dataset waits.", SERVER, TRY_AGAIN
    ),
    "server.listing-unsteady": ProblemInfo(
        "A listing of the server changes while it is read.", SERVER
    ),
    "server.no-acl": ProblemInfo(
        "The server offers no way to share an experiment.", ADMINISTRATOR, TRY_AGAIN
    ),
    "server.certificate": ProblemInfo(
        "The server's certificate is not accepted.", ADMINISTRATOR, OPEN_SETTINGS, "server.ca_file"
    ),
    "server.tls": ProblemInfo(
        "The encrypted connection to the server fails.",
        ADMINISTRATOR,
        OPEN_SETTINGS,
        "server.ca_file",
    ),
    "server.ca-file": ProblemInfo(
        "The file of certificate authorities cannot be used.",
        ADMINISTRATOR,
        OPEN_SETTINGS,
        "server.ca_file",
    ),
    "server.proxy": ProblemInfo("The proxy fails or refuses.", USER, OPEN_SETTINGS, "server.proxy"),
    "uploader.not-approved": ProblemInfo("The key awaits approval.", ADMINISTRATOR, SET_UP),
    "uploader.not-admitted": ProblemInfo(
        "The key is approved, but the staging host does not know it yet.", ADMINISTRATOR, SET_UP
    ),
    "uploader.revoked": ProblemInfo("The approval was withdrawn.", ADMINISTRATOR, SET_UP),
    "uploader.expired": ProblemInfo(
        "The staging host refuses the key after its last day.", ADMINISTRATOR, SET_UP
    ),
    "uploader.expires": ProblemInfo(
        "The last day of the key is near or past.", ADMINISTRATOR, SET_UP
    ),
    "uploader.copied": ProblemInfo(
        "Another computer has the same identity: this installation is a copy, or it has taken "
        "the other's place.",
        USER,
        SET_UP,
    ),
    "settings.invalid": ProblemInfo("A setting is wrong.", USER, OPEN_SETTINGS),
    "settings.toml": ProblemInfo("The settings file cannot be read.", USER, OPEN_SETTINGS),
    "settings.locked": ProblemInfo("A setting is locked.", ADMINISTRATOR, OPEN_SETTINGS),
    "settings.no-key": ProblemInfo("There is no API key.", USER, SET_UP),
    "settings.no-keyring": ProblemInfo("There is no usable keyring.", USER, SET_UP),
    "settings.changed-elsewhere": ProblemInfo(
        "The settings file was changed by someone else while it was edited.", USER, OPEN_SETTINGS
    ),
    "settings.former": ProblemInfo(
        "A setting has a value of an earlier version; another one is used instead.",
        USER,
        OPEN_SETTINGS,
        "transfer.ssh",
    ),
    "settings.from-server": ProblemInfo(
        "The server's settings for this uploader were changed.", ADMINISTRATOR, OPEN_SETTINGS
    ),
    "settings.server-ignored": ProblemInfo(
        "One of the server's settings for this uploader is of no use.", ADMINISTRATOR, OPEN_SETTINGS
    ),
    "key.exposed": ProblemInfo(
        "The private key file is readable by others.", USER, OPEN_SETTINGS, "transfer.key_file"
    ),
    "key.passphrase": ProblemInfo(
        "The private key file is protected by a passphrase.",
        USER,
        OPEN_SETTINGS,
        "transfer.key_file",
    ),
    "key.unreadable": ProblemInfo(
        "The private key file cannot be read.", USER, OPEN_SETTINGS, "transfer.key_file"
    ),
    "key.unusable": ProblemInfo(
        "The private key file holds no key that can be used.",
        USER,
        OPEN_SETTINGS,
        "transfer.key_file",
    ),
    "key.elsewhere": ProblemInfo(
        "The private key file names a key that a device or an agent keeps.",
        USER,
        OPEN_SETTINGS,
        "transfer.key_file",
    ),
    "ledger.damaged": ProblemInfo(
        "The ledger was damaged and is put aside, and a new one is made.", NOBODY
    ),
    "ledger.failed": ProblemInfo(
        "The ledger cannot be used.", USER, OPEN_SETTINGS, "advanced.state_directory"
    ),
    "ledger.newer": ProblemInfo(
        "The ledger is of a newer version.", USER, OPEN_SETTINGS, "advanced.state_directory"
    ),
    "ledger.outdated": ProblemInfo(
        "The ledger is of an older version; the next run brings it up to date.", NOBODY, TRY_AGAIN
    ),
    "files.special": ProblemInfo(
        "A named pipe, socket, device or folder is in the place of a file of the program's own.",
        USER,
        OPEN_SETTINGS,
        "advanced.state_directory",
    ),
    "files.exposed": ProblemInfo(
        "Other accounts could read or change the program's files, and now cannot.", NOBODY
    ),
    "lock.failed": ProblemInfo(
        "No lock can be made.", USER, OPEN_SETTINGS, "advanced.state_directory"
    ),
    "run.already-running": ProblemInfo("Another run is at work.", NOBODY),
    "run.interrupted": ProblemInfo("The run was stopped by the user.", USER, TRY_AGAIN),
    "run.cut-off": ProblemInfo(
        "The program or the computer was ended in the middle of a run.", USER, START_RUN
    ),
    "run.failed": ProblemInfo("The run ended early.", USER, TRY_AGAIN),
    "run.paused": ProblemInfo("The user paused the run.", NOBODY),
    "run.stopping": ProblemInfo("The run ends before this file's turn.", NOBODY),
    "shard.one-experiment": ProblemInfo(
        "The layout makes one experiment of everything, which cannot be split.", USER, TRY_AGAIN
    ),
    "shard.no-identity": ProblemInfo(
        "The shards have no uuid yet that they could share.", USER, TRY_AGAIN
    ),
    "command.unreadable": ProblemInfo("A command is no JSON object, or too long.", NOBODY),
    "command.unknown": ProblemInfo("A command has an unknown name.", NOBODY),
    "command.invalid": ProblemInfo("A command has wrong fields.", NOBODY),
    "command.nothing-to-retry": ProblemInfo("Nothing can be sent again there.", NOBODY),
    "command.too-late": ProblemInfo("The run is ending.", NOBODY),
    "command.no-run": ProblemInfo("There is no run to stop.", NOBODY),
    "command.no-watch": ProblemInfo("Only a watch starts runs.", NOBODY),
    "command.no-transfer": ProblemInfo(
        "The transfer that was to be cancelled has ended, or there was none of that number.", NOBODY
    ),
    "demo.no-sshd": ProblemInfo(
        "The demonstration's SSH server is missing.", ADMINISTRATOR, TRY_AGAIN
    ),
    "demo.sshd": ProblemInfo("The demonstration's SSH server did not start.", USER, TRY_AGAIN),
    "limits.quiet-hours": ProblemInfo(
        "Nothing new is sent: these are quiet hours.", NOBODY, OPEN_SETTINGS, "limits.quiet_hours"
    ),
    "limits.acquisition": ProblemInfo(
        "Nothing new is sent: a program runs that is not to be disturbed.",
        NOBODY,
        OPEN_SETTINGS,
        "limits.pause_while_running",
    ),
    "limits.pressure": ProblemInfo(
        "Nothing new is sent: other programs wait for disk or memory.", NOBODY
    ),
    "limits.pressure-unknown": ProblemInfo(
        "The system does not report whether programs wait for its disks.", NOBODY
    ),
    "limits.bandwidth": ProblemInfo(
        "No speed test is made: only so much may be sent now.",
        NOBODY,
        OPEN_SETTINGS,
        "limits.bandwidth",
    ),
    "speed.no-test": ProblemInfo(
        "There is no earlier speed test whose advice could be applied.", USER, TRY_AGAIN
    ),
    "window.engine-ended": ProblemInfo(
        "The window's engine ended unexpectedly: it is started again after a while, and the "
        "next run goes on where it was.",
        USER,
        TRY_AGAIN,
    ),
    "window.test-ended": ProblemInfo(
        "The window's speed test ended unexpectedly.", USER, TRY_AGAIN
    ),
    "window.unwritable": ProblemInfo("A table could not be written to a file.", USER, TRY_AGAIN),
    "window.impossible": ProblemInfo(
        "No window can open here: a display or libraries are missing.", USER, TRY_AGAIN
    ),
    "window.unresponsive": ProblemInfo(
        "The window that is open already does not answer.", USER, TRY_AGAIN
    ),
    "window.failed": ProblemInfo(
        "An unforeseen error in the window; the log has all of it.", USER, TRY_AGAIN
    ),
    "item.failed": ProblemInfo("Something else went wrong with one file.", USER, TRY_AGAIN),
    "item.rejected": ProblemInfo(
        "The server will not take one file as it is.", ADMINISTRATOR, TRY_AGAIN
    ),
    "item.transient": ProblemInfo(
        "Something else went wrong with one file, which may work later.", USER, TRY_AGAIN
    ),
    "schedule.manual": ProblemInfo(
        "A `watch` starts no run automatically, as schedule.kind is manual.",
        NOBODY,
        OPEN_SETTINGS,
        "schedule.kind",
    ),
    "schedule.no-signs": ProblemInfo(
        "The system does not report changes in the data directory: scans find them, later.", NOBODY
    ),
    "monitor.all-well": ProblemInfo("The weekly notice: all is well.", NOBODY),
    "monitor.nothing-came": ProblemInfo(
        "The weekly notice: no new files came.", USER, OPEN_SETTINGS, "monitor.notice_day"
    ),
    "monitor.nothing-ran": ProblemInfo(
        "The weekly notice: no run has ended well.", USER, TRY_AGAIN
    ),
    "monitor.unsafe": ProblemInfo(
        "The weekly notice: there are files that exist only here.", USER, TRY_AGAIN
    ),
    "monitor.silence": ProblemInfo(
        "No run has ended well for monitor.silent_hours.", USER, TRY_AGAIN
    ),
    "monitor.no-signal": ProblemInfo(
        "The dead man's switch could not be notified of a run that ended well.",
        USER,
        OPEN_SETTINGS,
        "monitor.signal_url",
    ),
    "free.unknown": ProblemInfo("A local file is kept: no run has sent it.", NOBODY),
    "free.unverified": ProblemInfo("A local file is kept: the server has not verified it.", NOBODY),
    "free.changed": ProblemInfo("A local file is kept: it is another one than was sent.", NOBODY),
    "free.other-bytes": ProblemInfo(
        "A local file is kept: its bytes are others although size and time are the same.", NOBODY
    ),
    "free.settling": ProblemInfo("A local file is kept: it changed a short while ago.", NOBODY),
    "free.no-record": ProblemInfo(
        "A local file is kept: the server now has no record of it.", NOBODY
    ),
    "free.differs": ProblemInfo(
        "A local file is kept: the server now has a record of other bytes.", NOBODY
    ),
    "free.no-replica": ProblemInfo(
        "A local file is kept: the server now has no verified copy.", NOBODY
    ),
    "free.not-verified-again": ProblemInfo(
        "A local file is kept: the server has not verified its copy again when it was asked.",
        NOBODY,
    ),
    "free.not-inside": ProblemInfo(
        "A local file is kept: it is missing in the archive on the server.", NOBODY
    ),
    "free.damaged-archive": ProblemInfo(
        "A local file is kept: the archive on the server is damaged.", NOBODY
    ),
    "free.link": ProblemInfo("A local file is kept: it is a link or behind one.", NOBODY),
    "free.special": ProblemInfo("A local file is kept: it is no regular file.", NOBODY),
    "free.outside": ProblemInfo(
        "A local file is kept: it lies outside of the data directory.", NOBODY
    ),
    "free.open": ProblemInfo(
        "A local file is kept: it is open in another program to be written, or locked by one.",
        NOBODY,
    ),
    "free.other-account": ProblemInfo(
        "A local file is kept: it is another account's, and the system does not say whether it "
        "is being written.",
        NOBODY,
    ),
    "free.gone": ProblemInfo("A local file is gone already.", NOBODY),
    "free.denied": ProblemInfo("A local file is kept: the system denied deleting it.", NOBODY),
    "free.aside": ProblemInfo(
        "A local file is kept: it was replaced twice during its deletion.", NOBODY
    ),
    "free.unproven-server": ProblemInfo(
        "Nothing is freed: the connection is not encrypted.", NOBODY
    ),
    "free.http-only": ProblemInfo("Nothing is freed: no storage box was approved.", NOBODY),
    "free.nothing-sent": ProblemInfo("Nothing is freed: nothing was sent from here.", NOBODY),
    "free.no-log": ProblemInfo("Nothing is freed: the log of deletions cannot be written.", NOBODY),
    "free.unsupported": ProblemInfo("Nothing is freed: the system offers no safe way.", NOBODY),
    "support.unwritable": ProblemInfo("The support bundle cannot be written.", USER, OPEN_FOLDER),
}
# Of a code that is not in the table, as one in a ledger that another version has written.
UNKNOWN: Final = ProblemInfo("", Fixer.USER, Action.TRY_AGAIN)
INTENDED: Final = frozenset(code for code, info in PROBLEMS.items() if info.intended)


def find_problem_info(code: str) -> ProblemInfo:
    """Return what is known of a code."""
    return PROBLEMS.get(code, UNKNOWN)
