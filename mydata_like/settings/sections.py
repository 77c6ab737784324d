"""The sections server, instrument, data, filters, advanced, window and monitor."""

from collections.abc import Iterator
from typing import Annotated, Literal

from mydata_like.core.model import Layout
from mydata_like.settings.fields import FieldInfo, Section
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


class Server(Section):
    """The upload server."""

    url: Annotated[
        ServerUrl,
        FieldInfo(
            "Server address",
            "The web address of the MyTardis server. It begins with https://.",
            legacy=("mytardis_url",),
            required=True,
        ),
    ] = ""
    username: Annotated[
        Line,
        FieldInfo(
            "Account",
            "The MyTardis account that uploads, usually that of a facility manager. Its API key "
            "is stored separately from the settings.",
            legacy=("username",),
            required=True,
        ),
    ] = ""
    ca_file: Annotated[
        OptionalPath,
        FieldInfo(
            "Certificate authorities",
            "A PEM file with the certificate authorities to trust instead of the system's. "
            "Needed if the server's certificate was issued by a private authority.",
        ),
    ] = None
    proxy: Annotated[
        Proxy,
        FieldInfo(
            "Proxy",
            "The address of the proxy for the server, such as http://proxy.example.org:3128. "
            "Empty uses the system's proxy; none connects directly. For a proxy with a "
            "password, set the environment variable HTTPS_PROXY.",
        ),
    ] = ""
    allow_http: Annotated[
        bool,
        FieldInfo(
            "Allow unencrypted http",
            "Whether to accept an http:// address for a server on another machine. Anyone on "
            "the network can then read the API key.",
        ),
    ] = False
    connect_timeout: Annotated[
        float,
        Range(0.1, 600),
        FieldInfo(
            "Connection timeout",
            "How long to wait for the server to accept a connection. Raise it for slow networks.",
            legacy=("connection_timeout",),
            unit="s",
        ),
    ] = 10.0
    read_timeout: Annotated[
        float,
        Range(0.1, 3600),
        FieldInfo(
            "Read timeout",
            "How long to wait for further data from the server during a request.",
            unit="s",
        ),
    ] = 30.0
    deadline: Annotated[
        float,
        Range(0.1, 3600),
        FieldInfo("Request deadline", "How long one request may take in total.", unit="s"),
    ] = 120.0
    write_timeout: Annotated[
        float,
        Range(0.1, 7200),
        FieldInfo(
            "Change timeout",
            "How long a request that changes data on the server may take. If its response is "
            "lost, the request is not sent again before this time has passed, because the "
            "server may still be processing it, unless it is seen that the server went down.",
            unit="s",
        ),
    ] = 300.0
    requests: Annotated[
        int,
        Range(1, 16),
        FieldInfo(
            "Parallel requests",
            "How many requests to the server may run concurrently, at most. Fewer do while the "
            "server is slow. Lower it for a small server.",
            legacy=("max_verification_threads",),
        ),
    ] = 6

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.url and not self.allow_http:
            parts = parse_url(self.url)
            if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
                yield "url", "must begin with https:// (or set server.allow_http to true)"


class Instrument(Section):
    """The instrument that produces the data, and its contact person."""

    name: Annotated[
        Line,
        FieldInfo(
            "Instrument",
            "The name of the instrument as shown on the server.",
            legacy=("instrument_name",),
            required=True,
        ),
    ] = ""
    facility: Annotated[
        Line,
        FieldInfo(
            "Facility",
            "The name, on the server, of the facility that operates the instrument.",
            legacy=("facility_name",),
            required=True,
        ),
    ] = ""
    contact_name: Annotated[
        Line,
        FieldInfo(
            "Contact name",
            "The person the server's administrators can contact about this uploader.",
            legacy=("contact_name",),
            required=True,
        ),
    ] = ""
    contact_email: Annotated[
        Email,
        FieldInfo(
            "Contact e-mail",
            "The e-mail address of the contact person.",
            legacy=("contact_email",),
            required=True,
        ),
    ] = ""
    uuid: Annotated[
        Line,
        FieldInfo(
            "Uploader identity",
            "The identity of this installation on the server. It is created at the first start. "
            "Two installations must never share one.",
            legacy=("uuid",),
        ),
    ] = ""


class Data(Section):
    """Which folders are uploaded, and how they map to the server's hierarchy."""

    directory: Annotated[
        OptionalPath,
        FieldInfo(
            "Data directory",
            "The folder that contains the instrument's data. Nothing in it is ever changed.",
            legacy=("data_directory",),
            required=True,
        ),
    ] = None
    layout: Annotated[
        Layout,
        FieldInfo(
            "Layout",
            "What each level of folders below the data directory represents.",
            legacy=("folder_structure",),
        ),
    ] = Layout.USERNAME_DATASET
    group_prefix: Annotated[
        Line,
        FieldInfo(
            "Group prefix",
            "The text put before the name of a user group's folder to get the group's name on "
            "the server. Only for layouts with user groups.",
            legacy=("group_prefix",),
        ),
    ] = ""
    unknown_owners: Annotated[
        Literal["upload", "skip"],
        FieldInfo(
            "Folders of unknown owners",
            "Whether to upload folders for the facility or skip them if the server does not "
            "know their owner.",
            legacy=("upload_invalid_user_folders", "upload_invalid_user_or_group_folders"),
        ),
    ] = "upload"
    changed: Annotated[
        Literal["keep-both", "hold", "replace"],
        FieldInfo(
            "Changed files",
            "What happens to a file that was rewritten after the server verified it: it is sent "
            "and the earlier copy is kept for a while, unless the file shrank below half its size; "
            "or it is held until you choose; or it is always sent. A file to which data was only "
            "appended is sent in any case.",
        ),
    ] = "keep-both"
    keep_replaced: Annotated[
        float,
        Range(0, 3660),
        FieldInfo(
            "Keep replaced content",
            "How many days the server's storage keeps the earlier content of a changed file; it "
            "needs as much space. With 0 it is removed once the server has verified the new "
            "content.",
            unit="days",
        ),
    ] = 30.0
    replace_freely: Annotated[
        tuple[Line, ...],
        FieldInfo(
            "Replace freely",
            "Patterns of files that programs rewrite all the time, such as *.log. They are never "
            "held and do not count for data.brake.",
        ),
    ] = ()
    brake: Annotated[
        int,
        Range(0, 1_000_000),
        FieldInfo(
            "Brake",
            "How many files of a dataset may be rewritten or shrink within 24 hours before the "
            "rest is held, if they are more than 5 % of its files. The same applies to 25 times "
            "as many files of all datasets. 0 turns it off.",
            unit="files",
        ),
    ] = 20


class Filters(Section):
    """Which folders and files are uploaded."""

    owner: Annotated[
        Line,
        FieldInfo(
            "Owner contains",
            "Upload only owners' folders whose name contains this text; empty uploads all.",
            legacy=("user_filter",),
        ),
    ] = ""
    experiment: Annotated[
        Line,
        FieldInfo(
            "Experiment contains",
            "Upload only experiment folders whose name contains this text; empty uploads all.",
            legacy=("experiment_filter",),
        ),
    ] = ""
    dataset: Annotated[
        Line,
        FieldInfo(
            "Dataset contains",
            "Upload only dataset folders whose name contains this text; empty uploads all.",
            legacy=("dataset_filter",),
        ),
    ] = ""
    ignore_older_than: Annotated[
        Age,
        FieldInfo(
            "Skip datasets older than",
            'Skip dataset folders older than this age, such as "6 months"; empty skips none.',
            legacy=("ignore_old_datasets", "ignore_interval_number", "ignore_interval_unit"),
        ),
    ] = ""
    ignore_newer_than: Annotated[
        Age,
        FieldInfo(
            "Skip datasets newer than",
            'Skip dataset folders younger than this age, such as "2 days"; empty skips none.',
            legacy=(
                "ignore_new_datasets",
                "ignore_new_interval_number",
                "ignore_new_interval_unit",
            ),
        ),
    ] = ""
    settle_seconds: Annotated[
        float,
        Range(0, 30 * 86_400),
        FieldInfo(
            "Settling time",
            "How long a file must remain unchanged before it is uploaded. Raise it for an "
            "instrument that pauses while it writes.",
            legacy=("ignore_new_files", "ignore_new_files_minutes"),
            unit="s",
        ),
    ] = 60.0
    includes: Annotated[
        tuple[Line, ...],
        FieldInfo(
            "Include patterns",
            "Upload only files that match one of these patterns; empty uploads all.",
        ),
    ] = ()
    excludes: Annotated[
        tuple[Line, ...],
        FieldInfo("Exclude patterns", "Skip files that match one of these patterns."),
    ] = ()
    includes_file: Annotated[
        OptionalPath,
        FieldInfo(
            "File of include patterns",
            "A UTF-8 text file with include patterns, one per line.",
            legacy=("use_includes_file", "includes_file"),
        ),
    ] = None
    excludes_file: Annotated[
        OptionalPath,
        FieldInfo(
            "File of exclude patterns",
            "A UTF-8 text file with exclude patterns, one per line.",
            legacy=("use_excludes_file", "excludes_file"),
        ),
    ] = None
    default_ignores: Annotated[
        bool,
        FieldInfo(
            "Skip system and temporary files",
            "Whether to skip files and folders that systems and programs leave behind (Thumbs.db, "
            ".DS_Store, ._ files and __MACOSX of macOS, @eaDir of a NAS, lock files, unfinished "
            "downloads).",
        ),
    ] = True
    symlinks: Annotated[
        Literal["skip", "files", "within"],
        FieldInfo(
            "Symbolic links",
            "Whether to skip links, follow them to files, or follow them to files and folders "
            "within the data directory.",
        ),
    ] = "skip"


class Advanced(Section):
    """Settings that rarely need a change."""

    state_directory: Annotated[
        OptionalPath,
        FieldInfo(
            "State directory",
            "The folder for the ledger and other state; empty uses the system's default.",
        ),
    ] = None
    log_level: Annotated[
        Literal["DEBUG", "INFO", "WARNING", "ERROR"],
        FieldInfo("Log level", "How detailed the log is; DEBUG helps to diagnose a problem."),
    ] = "INFO"
    register_batch: Annotated[
        int,
        Range(1, 500),
        FieldInfo("Records per request", "How many records one request creates at first."),
    ] = 25
    register_requests: Annotated[
        int,
        Range(1, 16),
        FieldInfo(
            "Parallel registrations",
            "How many requests that create records run concurrently, at most. Fewer do while the "
            "server is slow.",
        ),
    ] = 3
    verify_interval: Annotated[
        float,
        Range(0.01, 3600),
        FieldInfo(
            "Verification interval",
            "How long to wait before the first query whether the server has verified files.",
            legacy=("verification_delay",),
            unit="s",
        ),
    ] = 1.0
    verify_patience: Annotated[
        float,
        Range(0, 7 * 86_400),
        FieldInfo(
            "Verification timeout",
            "How long a run waits for the server's verification. The next run continues to wait "
            "for the remaining files.",
            unit="s",
        ),
    ] = 900.0
    pause_patience: Annotated[
        float,
        Range(0, 7 * 86_400),
        FieldInfo(
            "Pause timeout",
            "How long a run waits while the server is unavailable or asks it to wait, or while the "
            "staging area is full, before it ends.",
            unit="s",
        ),
    ] = 600.0
    full_check_days: Annotated[
        float,
        Range(0, 366),
        FieldInfo(
            "Full check",
            "The number of days after which every datafile on the server is compared with the "
            "ledger again; 0 compares in every run. In between, two queries for each dataset "
            "show whether any are missing or no longer verified.",
            unit="days",
        ),
    ] = 7.0


class Window(Section):
    """The behaviour of the window, the tray and notifications."""

    start_at_login: Annotated[
        bool,
        FieldInfo(
            "Start at login",
            "Whether the program starts in the tray at login.",
            legacy=("start_automatically_on_login",),
        ),
    ] = False
    opens: Annotated[
        Literal["normal", "minimized", "maximized", "tray"],
        FieldInfo(
            "Window at start",
            "How the window appears when the program starts.",
            legacy=("on_start_run",),
        ),
    ] = "normal"
    theme: Annotated[
        Literal["system", "light", "dark"],
        FieldInfo(
            "Colours",
            "Whether the window is light or dark, or follows the system.",
        ),
    ] = "system"
    language: Annotated[
        Literal["system", "en", "de"],
        FieldInfo(
            "Language",
            "The language of the window, from its next start on. Logs, commands and messages of "
            "the server remain in English.",
        ),
    ] = "system"
    close_to_tray: Annotated[
        bool,
        FieldInfo(
            "Continue when the window is closed",
            "Whether the program continues when its window is closed: in the tray, or as a "
            "small window on systems without a tray. Otherwise, closing the window quits the "
            "program.",
        ),
    ] = True
    notify_finished: Annotated[
        bool,
        FieldInfo("Notify of uploads", "Whether to show a notification when files were uploaded."),
    ] = True
    notify_problem: Annotated[
        bool,
        FieldInfo(
            "Notify of problems", "Whether to show a notification for problems that need attention."
        ),
    ] = True
    notify_approval: Annotated[
        bool,
        FieldInfo(
            "Notify of the approval",
            "Whether to show a notification when the uploader awaits approval and when it is "
            "approved.",
        ),
    ] = True
    notify_silence: Annotated[
        bool,
        FieldInfo(
            "Notify of inactivity",
            "Whether to show a notification when no run has succeeded for monitor.silent_hours.",
        ),
    ] = True


class Monitor(Section):
    """Monitoring, and the weekly notice."""

    notice_day: Annotated[
        Literal[Weekday, "never"],
        FieldInfo(
            "Weekly notice",
            "The day of the weekly notice, which reports whether all is well or no new files came.",
        ),
    ] = "monday"
    signal_file: Annotated[
        OptionalPath,
        FieldInfo(
            "Signal file",
            "A file that is written after each successful run, for a monitoring system to check.",
        ),
    ] = None
    signal_url: Annotated[
        Url,
        FieldInfo(
            "Signal address",
            "A web address that is requested after each successful run (a dead man's switch).",
        ),
    ] = ""
    silent_hours: Annotated[
        int,
        Range(0, 8760),
        FieldInfo(
            "Silence",
            "The number of hours without a successful run after which the user is notified, if "
            "runs were tried. A run succeeds if it ends without a problem or a failed file; 0 "
            "never notifies.",
            unit="h",
        ),
    ] = 48
