"""Every problem code: its meaning, who can fix it, and the button the window shows.

To add a code, add a row here and raise it.
Messages and hints are written where a problem is raised, because they name the file or host
concerned.
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
    """The action of the button next to a problem."""

    TRY_AGAIN = "Try again"
    START_RUN = "Start"
    OPEN_FOLDER = "Open folder"
    OPEN_SETTINGS = "Open settings"
    SET_UP = "Check key and approval"
    NOTHING = ""  # there is no button


class ProblemInfo(NamedTuple):
    """The metadata of a problem code.

    `setting` is the key to show when the settings open. For a reason to skip, `intended` states
    whether the user wanted it, by a setting or because such files are not data (by the layout,
    files outside its dataset folders are not); files skipped for other reasons count as left
    behind. It is None for codes that skip nothing. `filters` are the keys that the user intends it
    by; if the server set them, it counts as left behind.
    """

    meaning: str
    fixer: Fixer
    action: Action = Action.NOTHING
    setting: str = ""
    intended: bool | None = None
    filters: tuple[str, ...] = ()


USER, ADMINISTRATOR, SERVER, NOBODY = Fixer
TRY_AGAIN, START_RUN, OPEN_FOLDER, OPEN_SETTINGS, SET_UP, _ = Action

PROBLEMS: Final[Mapping[str, ProblemInfo]] = {
    "file.changed": ProblemInfo(
        "The local file changed while it was read; the next run uploads it.", NOBODY
    ),
    "file.replaced": ProblemInfo(
        "Another file replaced the local file while it was read; the next run uploads it.",
        NOBODY,
    ),
    "file.vanished": ProblemInfo("The local file was moved or deleted before it was read.", NOBODY),
    "file.in-use": ProblemInfo(
        "Another program on this computer lets no other read the file; a later run uploads it.",
        USER,
    ),
    "file.unreadable": ProblemInfo(
        "The operating system denies reading the file.", USER, OPEN_FOLDER
    ),
    "file.differs-here": ProblemInfo(
        "The local file has other bytes than its copy, with the same size and time.", USER
    ),
    "file.cancelled": ProblemInfo(
        "The user held the file back; a later run uploads it.", USER, TRY_AGAIN
    ),
    "file.failed": ProblemInfo(
        "Files failed in a run. The window shows one notice for all of them; each has its own "
        "code.",
        USER,
        TRY_AGAIN,
    ),
    "folder.unreadable": ProblemInfo(
        "The operating system denies reading the folder.", USER, OPEN_FOLDER
    ),
    "folder.same-dataset": ProblemInfo(
        "Two folders of a run would become the same dataset.", USER, OPEN_FOLDER
    ),
    "folder.renamed": ProblemInfo(
        "A dataset folder was renamed since it was sent; its files are sent again, as another "
        "dataset.",
        USER,
        OPEN_FOLDER,
    ),
    "folder.unknown": ProblemInfo(
        "A run for one folder found no dataset folder there.", USER, OPEN_SETTINGS, "data.layout"
    ),
    "waiting.unsent": ProblemInfo(
        "The file was found and not sent yet. Only used in the ledger, never in an event.",
        USER,
        START_RUN,
    ),
    "waiting.settling": ProblemInfo(
        "The file was modified recently; a later run uploads it.", NOBODY
    ),
    "waiting.open": ProblemInfo(
        "Another program has the file open and may be writing to it; a later run uploads it.",
        NOBODY,
    ),
    "file.sent-open": ProblemInfo(
        "Files are sent although a program has them open: they have not changed for 12 hours.",
        NOBODY,
    ),
    "waiting.future": ProblemInfo(
        "The file's modification time is in the future by this computer's clock; a later run "
        "uploads it, once it has not changed for the settling time.",
        USER,
        OPEN_FOLDER,
    ),
    "file.sent-future": ProblemInfo(
        "Files are sent although their modification time is in the future: they have not changed "
        "for the settling time.",
        NOBODY,
    ),
    "waiting.compare": ProblemInfo(
        "The server has a record with this name and size. A run reads the file once and "
        "compares its checksum; a dry run does not.",
        NOBODY,
    ),
    "waiting.changed": ProblemInfo(
        "The file was rewritten or shrunk after it was verified. The verified copy is kept until "
        "the user chooses which of both is right.",
        USER,
        OPEN_FOLDER,
    ),
    "waiting.replacing": ProblemInfo(
        "The server still has the earlier content of a changed file as verified; the new "
        "content is stored next to it.",
        SERVER,
    ),
    "changed.nothing-kept": ProblemInfo(
        "Nothing is brought back: no earlier content of the file is kept on the server.", NOBODY
    ),
    "changed.no-record": ProblemInfo(
        "Nothing is brought back: the server has no record of the file any more.", ADMINISTRATOR
    ),
    "waiting.recheck": ProblemInfo(
        "The file was known as verified, but an answer of the server contradicts that; the next "
        "run compares it with the server. Only used in the ledger, never in an event.",
        USER,
        START_RUN,
    ),
    "waiting.archive": ProblemInfo(
        "An archive on the server may contain the file; it can be read when it is verified.", NOBODY
    ),
    "skipped.filtered": ProblemInfo(
        "A folder is skipped by the filters.",
        USER,
        OPEN_SETTINGS,
        "filters.dataset",
        intended=True,
        filters=("filters.owner", "filters.experiment", "filters.dataset"),
    ),
    "skipped.layout": ProblemInfo(
        "A folder does not match the layout.", USER, OPEN_SETTINGS, "data.layout", intended=False
    ),
    "skipped.old": ProblemInfo(
        "A folder is skipped because it is too old.",
        USER,
        OPEN_SETTINGS,
        "filters.ignore_older_than",
        intended=True,
        filters=("filters.ignore_older_than",),
    ),
    "skipped.young": ProblemInfo(
        "A folder is skipped because it is too new.",
        USER,
        OPEN_SETTINGS,
        "filters.ignore_newer_than",
        intended=True,
        filters=("filters.ignore_newer_than",),
    ),
    "skipped.owner": ProblemInfo(
        "The server has no owner with the name of the folder.",
        ADMINISTRATOR,
        OPEN_SETTINGS,
        "data.unknown_owners",
        intended=False,
    ),
    "skipped.hidden": ProblemInfo(
        "A folder is skipped because its name begins with a dot.", NOBODY, intended=True
    ),
    "skipped.pattern": ProblemInfo(
        "A file is skipped by the user's patterns.",
        USER,
        OPEN_SETTINGS,
        "filters.includes",
        intended=True,
        filters=("filters.includes", "filters.excludes"),
    ),
    "skipped.ignored": ProblemInfo(
        "A file is skipped by the default list.",
        NOBODY,
        intended=True,
        filters=("filters.default_ignores",),
    ),
    "skipped.destination": ProblemInfo(
        "The folder .mydata-like of another destination is not copied.",
        NOBODY,
        intended=True,
    ),
    "skipped.by-server": ProblemInfo(
        "A file or folder is skipped by a filter that the server set, so it counts as left behind.",
        ADMINISTRATOR,
        OPEN_SETTINGS,
        "filters.excludes",
        intended=False,
    ),
    "skipped.special": ProblemInfo("The file is a pipe, socket or device.", NOBODY, intended=True),
    "skipped.symlink": ProblemInfo("The file or folder is a link.", NOBODY, intended=True),
    "skipped.outside-dataset": ProblemInfo(
        "The file is outside all dataset folders.", USER, OPEN_FOLDER, intended=True
    ),
    "skipped.changed": ProblemInfo(
        "The user chose to keep the server's copy of a file that was rewritten or shrunk.",
        NOBODY,
        intended=True,
    ),
    "skipped.remote": ProblemInfo(
        "The file's content is in cloud storage or on tape, not on this computer.",
        USER,
        OPEN_FOLDER,
        intended=False,
    ),
    "skipped.name": ProblemInfo(
        "The server cannot store the name.", USER, OPEN_FOLDER, intended=False
    ),
    "name.unfit": ProblemInfo("The server cannot store the name.", USER, OPEN_FOLDER),
    "source.inside": ProblemInfo("The source is in the data directory.", USER),
    "source.holds-data": ProblemInfo("The source contains the data directory.", USER),
    "source.gone": ProblemInfo("The source is unavailable or cannot be read.", USER, OPEN_FOLDER),
    "source.link": ProblemInfo("The source is a link.", USER, OPEN_FOLDER),
    "source.special": ProblemInfo("The source is neither folder nor file.", USER, OPEN_FOLDER),
    "source.name": ProblemInfo("The server cannot store a name that the source would get.", USER),
    "source.overlap": ProblemInfo(
        "The source is in another source of the run, or contains it.", USER
    ),
    "source.name-taken": ProblemInfo(
        "Another folder goes to the same place at the destination.", USER
    ),
    "source.later": ProblemInfo(
        "The run has already uploaded the source or is ending; the next run uploads it.", USER
    ),
    "source.refused": ProblemInfo("The source cannot be uploaded.", USER),
    "source.unknown": ProblemInfo(
        "The path to remove is not an unfinished source.", USER, OPEN_FOLDER
    ),
    "copy.destination": ProblemInfo("The destination of a copy is not valid.", USER),
    "copy.source": ProblemInfo("A source cannot be copied, or not together with the others.", USER),
    "changed.unknown": ProblemInfo("No changed file is held at a path.", USER),
    "changed.unwritten": ProblemInfo(
        "A choice for changed files cannot be stored in the state folder.",
        USER,
        OPEN_SETTINGS,
        "advanced.state_directory",
    ),
    "data.unavailable": ProblemInfo(
        "The data directory is unavailable, or none of the files that earlier runs found are "
        "left in it.",
        USER,
        OPEN_SETTINGS,
        "data.directory",
    ),
    "data.nested": ProblemInfo(
        "A data directory is inside another one: runs over both send the same files twice.",
        USER,
        OPEN_SETTINGS,
        "data.directory",
    ),
    "data.empty": ProblemInfo(
        "The data directory contains nothing that matches the layout.",
        USER,
        OPEN_SETTINGS,
        "data.layout",
    ),
    "link.lost": ProblemInfo("The SSH connection was lost.", SERVER),
    "link.stalled": ProblemInfo("The SSH connection stalled.", SERVER),
    "link.refused": ProblemInfo(
        "The SSH connection could not be established.", ADMINISTRATOR, TRY_AGAIN
    ),
    "channel.lost": ProblemInfo("A channel's process ended.", SERVER),
    "channel.stalled": ProblemInfo("A channel stalled.", SERVER),
    "channel.dropped": ProblemInfo("A channel was closed because of another channel.", SERVER),
    "channel.closed": ProblemInfo("A channel was closed.", SERVER),
    "channel.refused": ProblemInfo("The staging host refused a channel.", SERVER),
    "transfer.closed": ProblemInfo(
        "The run ended during the transfer of the file.", USER, TRY_AGAIN
    ),
    "ssh.key-refused": ProblemInfo("The staging host refuses our key.", ADMINISTRATOR, SET_UP),
    "ssh.exec-refused": ProblemInfo("The staging host refuses commands.", ADMINISTRATOR, TRY_AGAIN),
    "ssh.sftp-refused": ProblemInfo("The staging host refuses SFTP.", ADMINISTRATOR, TRY_AGAIN),
    "ssh.no-channel": ProblemInfo(
        "The staging host accepts our key, but allows no commands and no transfers.",
        ADMINISTRATOR,
        TRY_AGAIN,
    ),
    "ssh.no-agreement": ProblemInfo(
        "The staging host and we have a kind of algorithm not in common.",
        USER,
        OPEN_SETTINGS,
        "transfer.ssh",
    ),
    "ssh.unchecked": ProblemInfo(
        "The installed libssh would not check what the staging host sends.",
        USER,
        OPEN_SETTINGS,
        "transfer.ciphers",
    ),
    "ssh.paramiko": ProblemInfo(
        "The staging host is reached with paramiko, which checks what the host sends.",
        USER,
        OPEN_SETTINGS,
        "transfer.ciphers",
    ),
    "ssh.expired": ProblemInfo(
        "The account on the staging host, or its password, has expired.", ADMINISTRATOR, TRY_AGAIN
    ),
    "ssh.second-factor": ProblemInfo(
        "The staging host wants a second factor besides our key.", ADMINISTRATOR, TRY_AGAIN
    ),
    "ssh.no-algorithm": ProblemInfo(
        "The selected SSH implementation supports none of the allowed algorithms.",
        USER,
        OPEN_SETTINGS,
        "transfer.ssh",
    ),
    "ssh.no-libssh": ProblemInfo(
        "The selected SSH implementation, libssh, is missing.", USER, OPEN_SETTINGS, "transfer.ssh"
    ),
    "ssh.no-agent": ProblemInfo(
        "There is no SSH agent, or it does not respond.", USER, OPEN_SETTINGS, "transfer.ssh_agent"
    ),
    "ssh.config": ProblemInfo("The user's SSH configuration is invalid or unusable.", USER),
    "host-key.unknown": ProblemInfo("The staging host's key is not trusted.", USER, SET_UP),
    "host-key.changed": ProblemInfo(
        "The staging host's key is not the known one.", ADMINISTRATOR, SET_UP
    ),
    "host-key.revoked": ProblemInfo("The host's key was revoked.", ADMINISTRATOR),
    "staging.full": ProblemInfo(
        "The staging area is full, or has no space for a file.", ADMINISTRATOR, TRY_AGAIN
    ),
    "staging.denied": ProblemInfo(
        "There is no permission to write to the staging area.", ADMINISTRATOR, TRY_AGAIN
    ),
    "staging.refused": ProblemInfo(
        "The staging host allows no supported transfer method.", ADMINISTRATOR, TRY_AGAIN
    ),
    "staging.cleaned": ProblemInfo(
        "Files that interrupted transfers of this uploader left in the staging area were "
        "removed after seven days.",
        SERVER,
        TRY_AGAIN,
    ),
    "staging.unproven": ProblemInfo(
        "The staging host did not confirm a file; it is sent again.", SERVER, TRY_AGAIN
    ),
    "staging.protocol": ProblemInfo(
        "The staging host sent an unexpected response.", SERVER, TRY_AGAIN
    ),
    "staging.shell": ProblemInfo(
        "A shell on the staging host sent an unexpected response.", ADMINISTRATOR, TRY_AGAIN
    ),
    "staging.missing": ProblemInfo(
        "The staging host lost a file that was stored temporarily.", SERVER, TRY_AGAIN
    ),
    "staging.flood": ProblemInfo("The staging host sent an endless response.", SERVER, TRY_AGAIN),
    "staging.incomplete": ProblemInfo(
        "The approved storage box lacks required attributes.", ADMINISTRATOR, TRY_AGAIN
    ),
    "staging.no-host": ProblemInfo(
        "The approved storage box names no host.", ADMINISTRATOR, TRY_AGAIN
    ),
    "staging.no-tar": ProblemInfo(
        "There is no tar on the staging host, so tiny files are sent one by one.",
        ADMINISTRATOR,
        TRY_AGAIN,
    ),
    "staging.no-programs": ProblemInfo(
        "The staging host's shell lacks programs, so files are sent by SFTP or scp.",
        ADMINISTRATOR,
        TRY_AGAIN,
    ),
    "staging.no-times": ProblemInfo(
        "The staging host does not set modification times.", ADMINISTRATOR, TRY_AGAIN
    ),
    "staging.no-resume": ProblemInfo(
        "Interrupted transfers to the staging host start again from the beginning.",
        ADMINISTRATOR,
        TRY_AGAIN,
    ),
    "staging.moved": ProblemInfo(
        "The server now names another staging area, which the next run uses.", NOBODY
    ),
    "staging.absent": ProblemInfo(
        "The folder of the staging area cannot be reached.",
        ADMINISTRATOR,
        TRY_AGAIN,
    ),
    "staging.lost": ProblemInfo("The folder of the staging area was lost.", SERVER, TRY_AGAIN),
    "staging.unconfirmed": ProblemInfo(
        "The folder of the staging area is not mounted, or was not confirmed yet.",
        USER,
        SET_UP,
    ),
    "staging.wrong": ProblemInfo(
        "The folder is that of another storage box.", USER, OPEN_SETTINGS, "transfer.folder"
    ),
    "staging.name": ProblemInfo("The staging area cannot store the name.", USER, OPEN_FOLDER),
    "destination.occupied": ProblemInfo(
        "Something else has the name of a file or folder at the destination; it is not replaced.",
        USER,
        TRY_AGAIN,
    ),
    "destination.differs": ProblemInfo(
        "The bytes at the destination differ from those that were sent, or that are listed.",
        ADMINISTRATOR,
        TRY_AGAIN,
    ),
    "destination.missing": ProblemInfo(
        "Many files that were proven are no longer at the destination.", USER
    ),
    "destination.marker": ProblemInfo(
        "The marker of the destination cannot be read.", ADMINISTRATOR
    ),
    "destination.other": ProblemInfo(
        "The destination is another one than in earlier runs.", USER, TRY_AGAIN
    ),
    "destination.unmarked": ProblemInfo(
        "The folder is not a destination of copy: it has no marker.", USER
    ),
    "receipt.no-files": ProblemInfo(
        "There are no files at the path for a receipt, and no ledger knows any.", USER
    ),
    "receipt.unreadable": ProblemInfo(
        "The file cannot be read, or is no complete receipt in text form.", USER
    ),
    "drive.not-ejected": ProblemInfo(
        "A removable drive is in use or has files that are not verified, or the system refuses.",
        USER,
    ),
    "destination.no-manifest": ProblemInfo("The manifest of the destination lists no files.", USER),
    "destination.evidence": ProblemInfo(
        "The destination proves files in a weaker way than was demanded.", USER
    ),
    "destination.checksum": ProblemInfo(
        "The checksums of the destination are of another kind than was demanded.", USER
    ),
    "destination.inside": ProblemInfo("The destination is in a source, or a source in it.", USER),
    "destination.manifest": ProblemInfo(
        "A part of the manifest at the destination cannot be read.", ADMINISTRATOR
    ),
    "destination.link": ProblemInfo(
        "A folder at the destination is a symbolic link, which is not followed.", USER, TRY_AGAIN
    ),
    "destination.name": ProblemInfo("The destination cannot store the name.", USER, OPEN_FOLDER),
    "destination.denied": ProblemInfo(
        "There is no permission to read or write at the destination.", ADMINISTRATOR, TRY_AGAIN
    ),
    "destination.read-only": ProblemInfo(
        "The destination is mounted read-only.", ADMINISTRATOR, TRY_AGAIN
    ),
    "destination.refused": ProblemInfo(
        "The system of the destination refused a file; the message has its reason.",
        ADMINISTRATOR,
        TRY_AGAIN,
    ),
    "destination.absent": ProblemInfo(
        "The destination does not exist, or its disk or share is not mounted.", USER, TRY_AGAIN
    ),
    "destination.no-folder": ProblemInfo("The destination is not a folder.", USER),
    "destination.no-shell": ProblemInfo(
        "The host of the destination allows no shell.", ADMINISTRATOR, TRY_AGAIN
    ),
    "destination.no-sftp": ProblemInfo(
        "The host of the destination allows neither a usable shell nor SFTP.",
        ADMINISTRATOR,
        TRY_AGAIN,
    ),
    "destination.no-programs": ProblemInfo(
        "The host of the destination lacks programs that are needed.", ADMINISTRATOR, TRY_AGAIN
    ),
    "destination.no-checksum": ProblemInfo(
        "The host of the destination has no program that computes checksums.",
        ADMINISTRATOR,
        TRY_AGAIN,
    ),
    "s3.not-installed": ProblemInfo(
        "The package for uploads to object storage is not installed.",
        ADMINISTRATOR,
        OPEN_SETTINGS,
        "transfer.method",
    ),
    "s3.incomplete": ProblemInfo(
        "The bucket or the access key for object storage is not set.",
        USER,
        OPEN_SETTINGS,
        "transfer.s3_bucket",
    ),
    "s3.no-secret": ProblemInfo(
        "The secret of the access key for object storage is not stored.",
        USER,
        OPEN_SETTINGS,
        "transfer.s3_access_key",
    ),
    "s3.other-box": ProblemInfo(
        "The approved storage box is not that of the bucket.",
        ADMINISTRATOR,
        OPEN_SETTINGS,
        "transfer.s3_box",
    ),
    "s3.address": ProblemInfo(
        "The address of the object storage is wrong.", USER, OPEN_SETTINGS, "transfer.s3_endpoint"
    ),
    "s3.key": ProblemInfo(
        "The object storage does not accept the access key or its secret.",
        USER,
        OPEN_SETTINGS,
        "transfer.s3_access_key",
    ),
    "s3.clock": ProblemInfo(
        "The object storage refuses requests because this computer's clock is wrong.",
        USER,
        TRY_AGAIN,
    ),
    "s3.no-bucket": ProblemInfo(
        "The object storage does not have the bucket.", USER, OPEN_SETTINGS, "transfer.s3_bucket"
    ),
    "s3.denied": ProblemInfo(
        "The access key has no right to store objects in the bucket.", ADMINISTRATOR, TRY_AGAIN
    ),
    "s3.elsewhere": ProblemInfo(
        "The bucket has another address or region.",
        USER,
        OPEN_SETTINGS,
        "transfer.s3_endpoint",
    ),
    "s3.unreachable": ProblemInfo("The object storage cannot be reached.", SERVER, TRY_AGAIN),
    "s3.busy": ProblemInfo("The object storage is too busy.", SERVER, TRY_AGAIN),
    "s3.lost": ProblemInfo("The connection to the object storage was lost.", SERVER),
    "s3.failed": ProblemInfo("The object storage failed for a moment.", SERVER),
    "s3.damaged": ProblemInfo(
        "The object storage received other bytes than were sent; they are sent again.", SERVER
    ),
    "s3.certificate": ProblemInfo(
        "The encrypted connection to the object storage fails.",
        ADMINISTRATOR,
        OPEN_SETTINGS,
        "server.ca_file",
    ),
    "s3.strange-answer": ProblemInfo(
        "The address is not that of an object storage.",
        USER,
        OPEN_SETTINGS,
        "transfer.s3_endpoint",
    ),
    "s3.too-large": ProblemInfo("The file is too large for object storage.", USER, OPEN_FOLDER),
    "s3.refused": ProblemInfo(
        "The object storage refuses a single file.", ADMINISTRATOR, TRY_AGAIN
    ),
    "s3.cleaned": ProblemInfo(
        "Parts that interrupted uploads left in the bucket were removed after seven days.",
        SERVER,
        TRY_AGAIN,
    ),
    "register.refused": ProblemInfo("The server refused a record.", ADMINISTRATOR, TRY_AGAIN),
    "register.unknown": ProblemInfo(
        "It is not known whether the server accepted a record.", SERVER
    ),
    "register.conflict": ProblemInfo("Another program has used the name.", SERVER, TRY_AGAIN),
    "register.lost": ProblemInfo(
        "The server reported that it accepted a record, but has none.", SERVER, TRY_AGAIN
    ),
    "verify.failed": ProblemInfo(
        "The server's copy differs even after the file was sent again.", ADMINISTRATOR, TRY_AGAIN
    ),
    "verify.pending": ProblemInfo("The server has not compared its copy yet.", SERVER),
    "archive.damaged": ProblemInfo(
        "A file is not an archive of this program, or it is damaged.", ADMINISTRATOR, TRY_AGAIN
    ),
    "archive.unreadable": ProblemInfo(
        "An archive, local or on the server, cannot be read.", ADMINISTRATOR, TRY_AGAIN
    ),
    "archive.no-member": ProblemInfo(
        "An archive does not contain the file.", ADMINISTRATOR, TRY_AGAIN
    ),
    "archive.name": ProblemInfo(
        "A local file has the name of an archive on the server, which it must not replace.",
        USER,
        OPEN_FOLDER,
    ),
    "archive.unwritable": ProblemInfo(
        "A file of an archive cannot be written to its destination.", USER, OPEN_FOLDER
    ),
    "archive.changed-member": ProblemInfo(
        "The content of a file in an archive is invalid because the file changed while it was "
        "read.",
        USER,
        TRY_AGAIN,
    ),
    "http.cannot-repair": ProblemInfo(
        "A changed file cannot be replaced over HTTP.", ADMINISTRATOR, TRY_AGAIN
    ),
    "http.chunk": ProblemInfo("The server refused a chunk.", SERVER, TRY_AGAIN),
    "server.unreachable": ProblemInfo("The server cannot be reached.", SERVER),
    "server.unavailable": ProblemInfo("The server or the network is unavailable.", SERVER),
    "server.slow": ProblemInfo("The server took too long to respond.", SERVER),
    "server.busy": ProblemInfo("The server is overloaded.", SERVER),
    "server.error": ProblemInfo("The server reported an internal error.", SERVER),
    "server.throttled": ProblemInfo("The server limits the rate of requests.", SERVER),
    "server.wait-requested": ProblemInfo(
        "The server asks for no requests until a certain time.", SERVER
    ),
    "server.connection-lost": ProblemInfo("The server closed the connection.", SERVER),
    "server.unanswered": ProblemInfo(
        "The response to a request that changes data was lost; the request is sent again only "
        "when the server can no longer be processing it.",
        SERVER,
        TRY_AGAIN,
    ),
    "server.denied": ProblemInfo(
        "The server does not accept the account's API key.", USER, OPEN_SETTINGS, "server.username"
    ),
    "server.forbidden": ProblemInfo(
        "The account is not allowed to do this.", ADMINISTRATOR, TRY_AGAIN
    ),
    "server.gateway": ProblemInfo(
        "A web page answered instead of the server: a gateway refuses this request.",
        ADMINISTRATOR,
        TRY_AGAIN,
    ),
    "server.refused": ProblemInfo("The server refuses this request.", ADMINISTRATOR, TRY_AGAIN),
    "server.not-found": ProblemInfo(
        "The server does not have the requested object.", SERVER, TRY_AGAIN
    ),
    "server.duplicate": ProblemInfo("The name is already used on the server.", SERVER, TRY_AGAIN),
    "server.elsewhere": ProblemInfo(
        "The server's copy is no longer in the staging area.", SERVER, TRY_AGAIN
    ),
    "server.replacing": ProblemInfo(
        "The server's record describes newer content that never arrived.", ADMINISTRATOR, TRY_AGAIN
    ),
    "server.lost": ProblemInfo(
        "Records or copies that the server had verified are missing, differ, or are no longer "
        "verified. Files that still exist locally are sent or verified again.",
        ADMINISTRATOR,
        TRY_AGAIN,
    ),
    "server.made-twice": ProblemInfo(
        "Two uploaders created the same experiment or dataset at the same time. The older one "
        "is used; the other stays empty.",
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
        "The address returns a web page.", USER, OPEN_SETTINGS, "server.url"
    ),
    "server.not-mytardis": ProblemInfo(
        "The address is not that of a MyTardis server.", USER, OPEN_SETTINGS, "server.url"
    ),
    "server.no-mydata": ProblemInfo(
        "The MyTardis server has no MyData app.", ADMINISTRATOR, TRY_AGAIN
    ),
    "server.strange-answer": ProblemInfo("A response of the server is invalid.", SERVER, TRY_AGAIN),
    "server.strange-record": ProblemInfo(
        "A single record is invalid; its file waits.", SERVER, TRY_AGAIN
    ),
    "server.listing-unsteady": ProblemInfo(
        "A listing of the server changed while it was read.", SERVER
    ),
    "server.no-acl": ProblemInfo(
        "The server does not support sharing an experiment.", ADMINISTRATOR, TRY_AGAIN
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
        "The file with certificate authorities cannot be used.",
        ADMINISTRATOR,
        OPEN_SETTINGS,
        "server.ca_file",
    ),
    "server.proxy": ProblemInfo(
        "The proxy fails or refuses the connection.", USER, OPEN_SETTINGS, "server.proxy"
    ),
    "uploader.not-approved": ProblemInfo("The key awaits approval.", ADMINISTRATOR, SET_UP),
    "uploader.not-admitted": ProblemInfo(
        "The key is approved, but the staging host does not accept it yet.", ADMINISTRATOR, SET_UP
    ),
    "uploader.revoked": ProblemInfo("The approval was withdrawn.", ADMINISTRATOR, SET_UP),
    "uploader.expired": ProblemInfo(
        "The staging host refuses the key because it has expired.", ADMINISTRATOR, SET_UP
    ),
    "uploader.expires": ProblemInfo("The key expires soon or has expired.", ADMINISTRATOR, SET_UP),
    "uploader.copied": ProblemInfo(
        "Another computer has the same identity: this installation is a copy of it, or has "
        "replaced it.",
        USER,
        SET_UP,
    ),
    "settings.no-server": ProblemInfo("The data goes to no MyTardis server.", NOBODY),
    "settings.invalid": ProblemInfo("A setting is wrong.", USER, OPEN_SETTINGS),
    "settings.toml": ProblemInfo("The settings file cannot be read.", USER, OPEN_SETTINGS),
    "settings.locked": ProblemInfo("A setting is locked.", ADMINISTRATOR, OPEN_SETTINGS),
    "settings.no-key": ProblemInfo("There is no API key.", USER, SET_UP),
    "settings.no-keyring": ProblemInfo("No keyring is available.", USER, SET_UP),
    "settings.changed-elsewhere": ProblemInfo(
        "The settings file was changed by another program while it was edited.", USER, OPEN_SETTINGS
    ),
    "settings.former": ProblemInfo(
        "A setting has a value of an earlier version; another value is used instead.",
        USER,
        OPEN_SETTINGS,
        "transfer.ssh",
    ),
    "settings.from-server": ProblemInfo(
        "The server's settings for this uploader were changed.", ADMINISTRATOR, OPEN_SETTINGS
    ),
    "settings.server-ignored": ProblemInfo(
        "One of the server's settings for this uploader is ignored.", ADMINISTRATOR, OPEN_SETTINGS
    ),
    "key.exposed": ProblemInfo(
        "The private key file is readable by other users.", USER, OPEN_SETTINGS, "transfer.key_file"
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
        "The private key file contains no usable key.",
        USER,
        OPEN_SETTINGS,
        "transfer.key_file",
    ),
    "key.elsewhere": ProblemInfo(
        "The private key file refers to a key that is stored on a device or in an agent.",
        USER,
        OPEN_SETTINGS,
        "transfer.key_file",
    ),
    "ledger.damaged": ProblemInfo(
        "The ledger was damaged. It was moved aside, and a new one was created.", NOBODY
    ),
    "ledger.failed": ProblemInfo(
        "The ledger cannot be used.", USER, OPEN_SETTINGS, "advanced.state_directory"
    ),
    "ledger.locked": ProblemInfo("Another program has locked the ledger.", USER, TRY_AGAIN),
    "ledger.newer": ProblemInfo(
        "The ledger was written by a newer version.",
        USER,
        OPEN_SETTINGS,
        "advanced.state_directory",
    ),
    "ledger.outdated": ProblemInfo(
        "The ledger was written by an older version; the next run updates it.", NOBODY, TRY_AGAIN
    ),
    "files.special": ProblemInfo(
        "A path of a program file is a named pipe, socket, device or folder.",
        USER,
        OPEN_SETTINGS,
        "advanced.state_directory",
    ),
    "files.exposed": ProblemInfo(
        "Other accounts could read or change the program's files; their permissions were removed.",
        NOBODY,
    ),
    "files.shared": ProblemInfo(
        "Other accounts may change the files in the state folder.",
        USER,
        OPEN_SETTINGS,
        "advanced.state_directory",
    ),
    "lock.failed": ProblemInfo(
        "The lock file cannot be created.", USER, OPEN_SETTINGS, "advanced.state_directory"
    ),
    "run.already-running": ProblemInfo("Another run is in progress.", NOBODY),
    "run.interrupted": ProblemInfo("The run was stopped by the user.", USER, TRY_AGAIN),
    "run.cut-off": ProblemInfo(
        "The program or the computer stopped during a run.", USER, START_RUN
    ),
    "run.failed": ProblemInfo("The run ended early.", USER, TRY_AGAIN),
    "run.paused": ProblemInfo("The user paused the run.", NOBODY),
    "run.stopping": ProblemInfo("The run ended before it reached this file.", NOBODY),
    "shard.one-experiment": ProblemInfo(
        "The layout makes a single experiment, which cannot be split.", USER, TRY_AGAIN
    ),
    "shard.no-identity": ProblemInfo(
        "There is no uuid yet for the shards to share.", USER, TRY_AGAIN
    ),
    "command.unreadable": ProblemInfo("A command is not a JSON object, or is too long.", NOBODY),
    "command.unknown": ProblemInfo("A command has an unknown name.", NOBODY),
    "command.invalid": ProblemInfo("A command has wrong fields.", NOBODY),
    "command.nothing-to-retry": ProblemInfo("There is nothing to send again at the path.", NOBODY),
    "command.too-late": ProblemInfo("The run is ending.", NOBODY),
    "command.no-run": ProblemInfo("There is no run to pause, resume or stop.", NOBODY),
    "command.no-answer": ProblemInfo(
        "The run is of another version or account, or does not answer.", NOBODY
    ),
    "command.no-watch": ProblemInfo("Only the watch starts runs.", NOBODY),
    "command.no-transfer": ProblemInfo(
        "The transfer to cancel has ended, or there is none with that number.", NOBODY
    ),
    "demo.no-sshd": ProblemInfo(
        "The demonstration's SSH server is missing.", ADMINISTRATOR, TRY_AGAIN
    ),
    "demo.sshd": ProblemInfo("The demonstration's SSH server did not start.", USER, TRY_AGAIN),
    "limits.quiet-hours": ProblemInfo(
        "Nothing is sent during quiet hours.", NOBODY, OPEN_SETTINGS, "limits.quiet_hours"
    ),
    "limits.acquisition": ProblemInfo(
        "Nothing is sent while a program that must not be disturbed is running.",
        NOBODY,
        OPEN_SETTINGS,
        "limits.pause_while_running",
    ),
    "limits.pressure": ProblemInfo(
        "Nothing is sent while other programs wait for disk or memory.", NOBODY
    ),
    "limits.pressure-unknown": ProblemInfo(
        "The system does not report whether programs wait for its disks.", NOBODY
    ),
    "limits.bandwidth": ProblemInfo(
        "The speed test is not possible while the bandwidth is limited.",
        NOBODY,
        OPEN_SETTINGS,
        "limits.bandwidth",
    ),
    "speed.no-test": ProblemInfo(
        "There is no earlier speed test with advice to apply.", USER, TRY_AGAIN
    ),
    "window.engine-ended": ProblemInfo(
        "The window's engine process ended unexpectedly. It is restarted after a pause, and the "
        "next run continues where the last one ended.",
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
        "The window that is already open does not respond.", USER, TRY_AGAIN
    ),
    "window.failed": ProblemInfo(
        "An unexpected error occurred in the window; the log has the details.", USER, TRY_AGAIN
    ),
    "item.failed": ProblemInfo("Another error occurred with a single file.", USER, TRY_AGAIN),
    "item.rejected": ProblemInfo("The server rejects a single file.", ADMINISTRATOR, TRY_AGAIN),
    "item.transient": ProblemInfo(
        "Another temporary error occurred with a single file.", USER, TRY_AGAIN
    ),
    "schedule.manual": ProblemInfo(
        "The command `watch` starts no runs automatically, because schedule.kind is manual.",
        NOBODY,
        OPEN_SETTINGS,
        "schedule.kind",
    ),
    "schedule.no-signs": ProblemInfo(
        "The system does not report changes in the data directory; periodic scans find them later.",
        NOBODY,
    ),
    "monitor.all-well": ProblemInfo("The weekly notice: all is well.", NOBODY),
    "monitor.nothing-came": ProblemInfo(
        "The weekly notice: no new files came.", USER, OPEN_SETTINGS, "monitor.notice_day"
    ),
    "monitor.nothing-ran": ProblemInfo("The weekly notice: no run succeeded.", USER, TRY_AGAIN),
    "monitor.unsafe": ProblemInfo(
        "The weekly notice: there are files that exist only here.", USER, TRY_AGAIN
    ),
    "monitor.silence": ProblemInfo(
        "No run has succeeded for monitor.silent_hours.", USER, TRY_AGAIN
    ),
    "monitor.no-signal": ProblemInfo(
        "The dead man's switch could not be notified of a successful run.",
        USER,
        OPEN_SETTINGS,
        "monitor.signal_url",
    ),
    "free.unknown": ProblemInfo("A local file is kept: no run has sent it.", NOBODY),
    "free.unverified": ProblemInfo("A local file is kept: the server has not verified it.", NOBODY),
    "free.changed": ProblemInfo("A local file is kept: it is not the file that was sent.", NOBODY),
    "free.other-bytes": ProblemInfo(
        "A local file is kept: its content differs although size and time are the same.", NOBODY
    ),
    "free.settling": ProblemInfo("A local file is kept: it changed recently.", NOBODY),
    "free.no-record": ProblemInfo(
        "A local file is kept: the server now has no record of it.", NOBODY
    ),
    "free.differs": ProblemInfo(
        "A local file is kept: the server now has a record of different content.", NOBODY
    ),
    "free.no-replica": ProblemInfo(
        "A local file is kept: the server now has no verified copy.", NOBODY
    ),
    "free.not-verified-again": ProblemInfo(
        "A local file is kept: the server did not verify its copy again on request.",
        NOBODY,
    ),
    "free.not-inside": ProblemInfo(
        "A local file is kept: it is missing in the archive on the server.", NOBODY
    ),
    "free.damaged-archive": ProblemInfo(
        "A local file is kept: the archive on the server is damaged.", NOBODY
    ),
    "free.link": ProblemInfo("A local file is kept: its path is or contains a link.", NOBODY),
    "free.special": ProblemInfo("A local file is kept: it is not a regular file.", NOBODY),
    "free.outside": ProblemInfo("A local file is kept: it is outside the data directory.", NOBODY),
    "free.open": ProblemInfo(
        "A local file is kept: another program has it open for writing, or has locked it.",
        NOBODY,
    ),
    "free.other-account": ProblemInfo(
        "A local file is kept: it belongs to another account, and the system does not report "
        "whether it is being written.",
        NOBODY,
    ),
    "free.gone": ProblemInfo("A local file has already been deleted.", NOBODY),
    "free.denied": ProblemInfo("A local file is kept: the system denied deleting it.", NOBODY),
    "free.aside": ProblemInfo(
        "A local file is kept: it was replaced twice during its deletion.", NOBODY
    ),
    "free.interrupted": ProblemInfo(
        "A process was killed while it deleted the file; the file was restored. Only used in the "
        "log of deletions.",
        NOBODY,
    ),
    "free.unproven-server": ProblemInfo(
        "Nothing is freed: the connection is not encrypted.", NOBODY
    ),
    "free.unproven-destination": ProblemInfo(
        "Nothing is freed: the destination is read from a cache.", NOBODY
    ),
    "free.http-only": ProblemInfo("Nothing is freed: no storage box was approved.", NOBODY),
    "free.nothing-sent": ProblemInfo("Nothing is freed: nothing was sent from here.", NOBODY),
    "free.no-log": ProblemInfo("Nothing is freed: the deletion log cannot be written.", NOBODY),
    "support.unwritable": ProblemInfo("The support bundle cannot be written.", USER, OPEN_FOLDER),
}
# For a code that is not in the table, such as one in a ledger written by another version.
UNKNOWN: Final = ProblemInfo("", Fixer.USER, Action.TRY_AGAIN)
# Files with these problems wait for the next run.
LEFT_FOR_LATER: Final = frozenset(
    {
        "file.changed",
        "file.vanished",
        "file.replaced",
        "file.in-use",
        "staging.full",
        "waiting.changed",
    }
)
INTENDED: Final = frozenset(code for code, info in PROBLEMS.items() if info.intended)


def find_problem_info(code: str) -> ProblemInfo:
    """Return the metadata of a code."""
    return PROBLEMS.get(code, UNKNOWN)
