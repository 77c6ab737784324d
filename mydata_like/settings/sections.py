"""The sections destination, server, instrument, data, filters, advanced, window and monitor."""

import os
import sys
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, Literal

from mydata_like.core.copy_arguments import (
    BucketTarget,
    CopyTarget,
    FolderTarget,
    HostTarget,
    parse_target,
)
from mydata_like.core.errors import SettingsError
from mydata_like.core.model import Layout
from mydata_like.settings.fields import Section, setting
from mydata_like.settings.schedule_section import Weekday
from mydata_like.settings.values import (
    Age,
    Email,
    Line,
    OptionalPath,
    Proxy,
    Range,
    ServerUrl,
    Url,
    is_loopback,
    parse_url,
)

TARGETS: Final[Mapping[str, type[CopyTarget]]] = MappingProxyType(
    {"host": HostTarget, "folder": FolderTarget, "s3": BucketTarget}
)


class DataDestination(Section):
    """Where the data goes."""

    kind: Literal["mytardis", "host", "folder", "s3"] = setting(
        "Kind of destination",
        "A MyTardis server (mytardis), which the other sections describe; or destination.address: "
        "a folder on a computer with SSH (host), a folder that is mounted here (folder), or a "
        "bucket of an object storage (s3). The last three need no server: the folders of the data "
        "directory arrive as they are, with a list of their checksums beside them.",
        default="mytardis",
    )
    address: Line = setting(
        "Address",
        "Where the data goes if it is no MyTardis server: USER@HOST:FOLDER, a local folder, or "
        "s3://BUCKET/FOLDER.",
        default="",
    )

    @property
    def takes_tree(self) -> bool:
        """Whether the folders of the data directory arrive as they are."""
        return self.kind != "mytardis"

    @property
    def name(self) -> str:
        """The host, folder or bucket, for messages; empty for a MyTardis server."""
        if not self.takes_tree:
            return ""
        try:
            target = self.parse()
        except SettingsError:
            return self.address
        return target.host if isinstance(target, HostTarget) else self.address

    @property
    def phrase(self) -> str:
        """Where the data is, for sentences: "on the server", "on HOST", "in FOLDER"."""
        if not self.takes_tree:
            return "on the server"
        return f"{'on' if self.kind == 'host' else 'in'} {self.name}"

    def parse(self, home: bytes = b"") -> CopyTarget:
        """Return what the address names; raises `SettingsError`."""
        return parse_target(self.address, windows=sys.platform == "win32", home=home)

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if not self.takes_tree or not self.address:
            return
        try:
            target = self.parse()
        except SettingsError as error:
            yield "address", f"cannot be used: {error.message} {error.hint}".strip()
            return
        if not isinstance(target, TARGETS[self.kind]):
            named = next(kind for kind, it in TARGETS.items() if isinstance(target, it))
            yield "address", f"is the address of a {named}, but destination.kind is {self.kind}"
        elif isinstance(target, FolderTarget) and not os.path.isabs(target.path):  # noqa: PTH117 - bytes
            yield "address", "must be an absolute path"


class Server(Section):
    """The upload server."""

    url: ServerUrl = setting(
        "Server address",
        "The web address of the MyTardis server. It begins with https://.",
        default="",
        legacy=("mytardis_url",),
        required=True,
    )
    username: Line = setting(
        "Account",
        "The MyTardis account that uploads, usually that of a facility manager. Its API key "
        "is stored separately from the settings.",
        default="",
        legacy=("username",),
        required=True,
    )
    ca_file: OptionalPath = setting(
        "Certificate authorities",
        "A PEM file with the certificate authorities to trust instead of the system's. "
        "Needed if the server's certificate was issued by a private authority.",
        default=None,
    )
    proxy: Proxy = setting(
        "Proxy",
        "The address of the proxy for the server, such as http://proxy.example.org:3128. "
        "Empty uses the system's proxy; none connects directly. For a proxy with a "
        "password, set the environment variable HTTPS_PROXY.",
        default="",
    )
    allow_http: bool = setting(
        "Allow unencrypted http",
        "Whether to accept an http:// address for a server on another machine. Anyone on "
        "the network can then read the API key.",
        default=False,
    )
    connect_timeout: float = setting(
        "Connection timeout",
        "How long to wait for the server to accept a connection. Raise it for slow networks.",
        default=10.0,
        check=Range(0.1, 600),
        legacy=("connection_timeout",),
        unit="s",
    )
    read_timeout: float = setting(
        "Read timeout",
        "How long to wait for further data from the server during a request.",
        default=30.0,
        check=Range(0.1, 3600),
        unit="s",
    )
    deadline: float = setting(
        "Request deadline",
        "How long one request may take in total.",
        default=120.0,
        check=Range(0.1, 3600),
        unit="s",
    )
    write_timeout: float = setting(
        "Change timeout",
        "How long a request that changes data on the server may take. If its response is "
        "lost, the request is not sent again before this time has passed, because the "
        "server may still be processing it, unless it is seen that the server went down.",
        default=300.0,
        check=Range(0.1, 7200),
        unit="s",
    )
    requests: int = setting(
        "Parallel requests",
        "How many requests to the server may run concurrently, at most. Fewer do while the "
        "server is slow. Lower it for a small server.",
        default=6,
        check=Range(1, 16),
        legacy=("max_verification_threads",),
    )

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.url and not self.allow_http:
            parts = parse_url(self.url)
            if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
                yield "url", "must begin with https:// (or set server.allow_http to true)"


class Instrument(Section):
    """The instrument that produces the data, and its contact person."""

    name: Line = setting(
        "Instrument",
        "The name of the instrument as shown on the server.",
        default="",
        legacy=("instrument_name",),
        required=True,
    )
    facility: Line = setting(
        "Facility",
        "The name, on the server, of the facility that operates the instrument.",
        default="",
        legacy=("facility_name",),
        required=True,
    )
    contact_name: Line = setting(
        "Contact name",
        "The person the server's administrators can contact about this uploader.",
        default="",
        legacy=("contact_name",),
        required=True,
    )
    contact_email: Email = setting(
        "Contact e-mail",
        "The e-mail address of the contact person.",
        default="",
        legacy=("contact_email",),
        required=True,
    )
    uuid: Line = setting(
        "Uploader identity",
        "The identity of this installation on the server. It is created at the first start. "
        "Two installations must never share one.",
        default="",
        legacy=("uuid",),
    )


class Data(Section):
    """Which folders are uploaded, and how they map to the server's hierarchy."""

    directory: OptionalPath = setting(
        "Data directory",
        "The folder that contains the instrument's data. Nothing in it is ever changed.",
        default=None,
        legacy=("data_directory",),
        required=True,
    )
    layout: Layout = setting(
        "Layout",
        "What each level of folders below the data directory represents.",
        default=Layout.USERNAME_DATASET,
        legacy=("folder_structure",),
    )
    group_prefix: Line = setting(
        "Group prefix",
        "The text put before the name of a user group's folder to get the group's name on "
        "the server. Only for layouts with user groups.",
        default="",
        legacy=("group_prefix",),
    )
    unknown_owners: Literal["upload", "skip"] = setting(
        "Folders of unknown owners",
        "Whether to upload folders for the facility or skip them if the server does not "
        "know their owner.",
        default="upload",
        legacy=("upload_invalid_user_folders", "upload_invalid_user_or_group_folders"),
    )
    changed: Literal["keep-both", "hold", "replace"] = setting(
        "Changed files",
        "What happens to a file that was rewritten after the server verified it: it is sent "
        "and the earlier copy is kept for a while, unless the file shrank below half its size; "
        "or it is held until you choose; or it is always sent. A file to which data was only "
        "appended is sent in any case.",
        default="keep-both",
    )
    keep_replaced: float = setting(
        "Keep replaced content",
        "How many days the server's storage keeps the earlier content of a changed file; it "
        "needs as much space. With 0 it is removed once the server has verified the new "
        "content.",
        default=30.0,
        check=Range(0, 3660),
        unit="days",
    )
    replace_freely: tuple[Line, ...] = setting(
        "Replace freely",
        "Patterns of files that programs rewrite all the time, such as *.log. They are never "
        "held and do not count for data.brake.",
        default=(),
    )
    brake: int = setting(
        "Brake",
        "How many files of a dataset may be rewritten or shrink within 24 hours before the "
        "rest is held, if they are more than 5 % of its files. The same applies to 25 times "
        "as many files of all datasets. 0 turns it off.",
        default=20,
        check=Range(0, 1_000_000),
        unit="files",
    )


class Filters(Section):
    """Which folders and files are uploaded."""

    owner: Line = setting(
        "Owner contains",
        "Upload only owners' folders whose name contains this text; empty uploads all.",
        default="",
        legacy=("user_filter",),
    )
    experiment: Line = setting(
        "Experiment contains",
        "Upload only experiment folders whose name contains this text; empty uploads all.",
        default="",
        legacy=("experiment_filter",),
    )
    dataset: Line = setting(
        "Dataset contains",
        "Upload only dataset folders whose name contains this text; empty uploads all.",
        default="",
        legacy=("dataset_filter",),
    )
    ignore_older_than: Age = setting(
        "Skip datasets older than",
        'Skip dataset folders older than this age, such as "6 months"; empty skips none.',
        default="",
        legacy=("ignore_old_datasets", "ignore_interval_number", "ignore_interval_unit"),
    )
    ignore_newer_than: Age = setting(
        "Skip datasets newer than",
        'Skip dataset folders younger than this age, such as "2 days"; empty skips none.',
        default="",
        legacy=(
            "ignore_new_datasets",
            "ignore_new_interval_number",
            "ignore_new_interval_unit",
        ),
    )
    settle_seconds: float = setting(
        "Settling time",
        "How long a file must remain unchanged before it is uploaded. Raise it for an "
        "instrument that pauses while it writes.",
        default=60.0,
        check=Range(0, 30 * 86_400),
        legacy=("ignore_new_files", "ignore_new_files_minutes"),
        unit="s",
    )
    includes: tuple[Line, ...] = setting(
        "Include patterns",
        "Upload only files that match one of these patterns; empty uploads all.",
        default=(),
    )
    excludes: tuple[Line, ...] = setting(
        "Exclude patterns",
        "Skip files that match one of these patterns.",
        default=(),
    )
    includes_file: OptionalPath = setting(
        "File of include patterns",
        "A UTF-8 text file with include patterns, one per line.",
        default=None,
        legacy=("use_includes_file", "includes_file"),
    )
    excludes_file: OptionalPath = setting(
        "File of exclude patterns",
        "A UTF-8 text file with exclude patterns, one per line.",
        default=None,
        legacy=("use_excludes_file", "excludes_file"),
    )
    default_ignores: bool = setting(
        "Skip system and temporary files",
        "Whether to skip files and folders that systems and programs leave behind (Thumbs.db, "
        ".DS_Store, ._ files and __MACOSX of macOS, @eaDir of a NAS, lock files, unfinished "
        "downloads).",
        default=True,
    )
    symlinks: Literal["skip", "files", "within"] = setting(
        "Symbolic links",
        "Whether to skip links, follow them to files, or follow them to files and folders "
        "within the data directory.",
        default="skip",
    )


class Advanced(Section):
    """Settings that rarely need a change."""

    state_directory: OptionalPath = setting(
        "State directory",
        "The folder for the ledger and other state; empty uses the system's default.",
        default=None,
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = setting(
        "Log level",
        "How detailed the log is; DEBUG helps to diagnose a problem.",
        default="INFO",
    )
    register_batch: int = setting(
        "Records per request",
        "How many records one request creates at first.",
        default=25,
        check=Range(1, 500),
    )
    register_requests: int = setting(
        "Parallel registrations",
        "How many requests that create records run concurrently, at most. Fewer do while the "
        "server is slow.",
        default=3,
        check=Range(1, 16),
    )
    verify_interval: float = setting(
        "Verification interval",
        "How long to wait before the first query whether the server has verified files.",
        default=1.0,
        check=Range(0.01, 3600),
        legacy=("verification_delay",),
        unit="s",
    )
    verify_patience: float = setting(
        "Verification timeout",
        "How long a run waits for the server's verification. The next run continues to wait "
        "for the remaining files.",
        default=900.0,
        check=Range(0, 7 * 86_400),
        unit="s",
    )
    pause_patience: float = setting(
        "Pause timeout",
        "How long a run waits while the server is unavailable or asks it to wait, or while the "
        "staging area is full, before it ends.",
        default=600.0,
        check=Range(0, 7 * 86_400),
        unit="s",
    )
    full_check_days: float = setting(
        "Full check",
        "The number of days after which every datafile on the server is compared with the "
        "ledger again; 0 compares in every run. In between, two queries for each dataset "
        "show whether any are missing or no longer verified.",
        default=7.0,
        check=Range(0, 366),
        unit="days",
    )


class Window(Section):
    """The behaviour of the window, the tray and notifications."""

    start_at_login: bool = setting(
        "Start at login",
        "Whether the program starts in the tray at login.",
        default=False,
        legacy=("start_automatically_on_login",),
    )
    opens: Literal["normal", "minimized", "maximized", "tray"] = setting(
        "Window at start",
        "How the window appears when the program starts.",
        default="normal",
        legacy=("on_start_run",),
    )
    theme: Literal["system", "light", "dark"] = setting(
        "Colours",
        "Whether the window is light or dark, or follows the system.",
        default="system",
    )
    language: Literal["system", "en", "de"] = setting(
        "Language",
        "The language of the window, from its next start on. Logs, commands and messages of "
        "the server remain in English.",
        default="system",
    )
    update_url: Url = setting(
        "Address of the newest version",
        "A web address whose text begins with the newest version; it is asked at the start of the "
        "window. Empty never asks. It is not asked on computers with a managed file.",
        default="",
    )
    close_to_tray: bool = setting(
        "Continue when the window is closed",
        "Whether the program continues when its window is closed: in the tray, or as a "
        "small window on systems without a tray. Otherwise, closing the window quits the "
        "program.",
        default=True,
    )
    notify_finished: bool = setting(
        "Notify of uploads",
        "Whether to show a notification when files were uploaded.",
        default=True,
    )
    notify_problem: bool = setting(
        "Notify of problems",
        "Whether to show a notification for problems that need attention.",
        default=True,
    )
    notify_approval: bool = setting(
        "Notify of the approval",
        "Whether to show a notification when the uploader awaits approval and when it is approved.",
        default=True,
    )
    notify_silence: bool = setting(
        "Notify of inactivity",
        "Whether to show a notification when no run has succeeded for monitor.silent_hours.",
        default=True,
    )


class Monitor(Section):
    """Monitoring, and the weekly notice."""

    notice_day: Literal[Weekday, "never"] = setting(
        "Weekly notice",
        "The day of the weekly notice, which reports whether all is well or no new files came.",
        default="monday",
    )
    signal_file: OptionalPath = setting(
        "Signal file",
        "A file that is written after each successful run, for a monitoring system to check.",
        default=None,
    )
    signal_url: Url = setting(
        "Signal address",
        "A web address that is requested after each successful run (a dead man's switch).",
        default="",
    )
    silent_hours: int = setting(
        "Silence",
        "The number of hours without a successful run after which the user is notified, if "
        "runs were tried. A run succeeds if it ends without a problem or a failed file; 0 "
        "never notifies.",
        default=48,
        check=Range(0, 8760),
        unit="h",
    )
