"""Settings of where data go and which of them: server, instrument, data, filters."""

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
    Url,
    is_loopback,
    parse_url,
)


class Server(Section):
    """The upload server."""

    url: Annotated[
        Url,
        FieldInfo(
            "Server address",
            "The web address of the MyTardis server, beginning with https://.",
            legacy=("mytardis_url",),
            required=True,
        ),
    ] = ""
    username: Annotated[
        Line,
        FieldInfo(
            "Account",
            "The MyTardis account that uploads, usually a facility manager's; "
            "its API key is kept apart from the settings.",
            legacy=("username",),
            required=True,
        ),
    ] = ""
    ca_file: Annotated[
        OptionalPath,
        FieldInfo(
            "Certificate authorities",
            "A PEM file with the certificate authorities to trust instead of the system's; "
            "needed where the server's certificate comes from an authority of your own.",
        ),
    ] = None
    proxy: Annotated[
        Proxy,
        FieldInfo(
            "Proxy",
            "The address of the proxy on the way to the server, as in "
            "http://proxy.example.org:3128; empty takes the system's, none goes directly. One "
            "that wants a password is set in the environment (HTTPS_PROXY).",
        ),
    ] = ""
    allow_http: Annotated[
        bool,
        FieldInfo(
            "Allow unencrypted http",
            "Whether an http:// address is accepted for a server on another machine; "
            "everybody on the way can then read the API key.",
        ),
    ] = False
    connect_timeout: Annotated[
        float,
        Range(0.1, 600),
        FieldInfo(
            "Connection timeout",
            "How long to wait for the server to accept a connection; raise it on poor links.",
            legacy=("connection_timeout",),
            unit="s",
        ),
    ] = 10.0
    read_timeout: Annotated[
        float,
        Range(0.1, 3600),
        FieldInfo(
            "Silence timeout",
            "How long the server may say nothing in the middle of a request.",
            unit="s",
        ),
    ] = 30.0
    deadline: Annotated[
        float,
        Range(0.1, 3600),
        FieldInfo("Request deadline", "How long one request may take altogether.", unit="s"),
    ] = 120.0
    write_timeout: Annotated[
        float,
        Range(0.1, 7200),
        FieldInfo(
            "Change timeout",
            "How long a request that changes something on the server may take. One whose answer "
            "was lost is not sent again before that, as the server may still be working on it.",
            unit="s",
        ),
    ] = 300.0
    requests: Annotated[
        int,
        Range(1, 16),
        FieldInfo(
            "Parallel requests",
            "How many requests to the server may run at once; lower it to spare a small server.",
            legacy=("max_verification_threads",),
        ),
    ] = 4

    def conflicts(self) -> Iterator[tuple[str, str]]:
        if self.url and not self.allow_http:
            parts = parse_url(self.url)
            if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
                yield "url", "must begin with https:// (or set server.allow_http to true)"


class Instrument(Section):
    """The machine that makes the data, and who looks after it."""

    name: Annotated[
        Line,
        FieldInfo(
            "Instrument",
            "The name of the instrument as it shall appear on the server.",
            legacy=("instrument_name",),
            required=True,
        ),
    ] = ""
    facility: Annotated[
        Line,
        FieldInfo(
            "Facility",
            "The name of the facility on the server that runs the instrument.",
            legacy=("facility_name",),
            required=True,
        ),
    ] = ""
    contact_name: Annotated[
        Line,
        FieldInfo(
            "Contact name",
            "The person whom the server's administrators may ask about this uploader.",
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
            "The identity of this installation on the server; it is made at the first start, "
            "and two installations must never share one.",
            legacy=("uuid",),
        ),
    ] = ""


class Data(Section):
    """The folders that are watched and how they map to the server's hierarchy."""

    directory: Annotated[
        OptionalPath,
        FieldInfo(
            "Data directory",
            "The folder below which the instrument's data lie; nothing in it is ever changed.",
            legacy=("data_directory",),
            required=True,
        ),
    ] = None
    layout: Annotated[
        Layout,
        FieldInfo(
            "Layout",
            "What each level of folders below the data directory stands for.",
            legacy=("folder_structure",),
        ),
    ] = Layout.USERNAME_DATASET
    group_prefix: Annotated[
        Line,
        FieldInfo(
            "Group prefix",
            "Text put before the name of a user group's folder to get the group's name on "
            "the server; only for layouts with user groups.",
            legacy=("group_prefix",),
        ),
    ] = ""
    unknown_owners: Annotated[
        Literal["upload", "skip"],
        FieldInfo(
            "Folders of unknown owners",
            "Whether folders whose owner the server does not know are uploaded "
            "for the facility or skipped.",
            legacy=("upload_invalid_user_folders", "upload_invalid_user_or_group_folders"),
        ),
    ] = "upload"


class Filters(Section):
    """Which folders and files are taken."""

    owner: Annotated[
        Line,
        FieldInfo(
            "Owner contains",
            "Take only owners' folders whose name contains this text; empty takes all.",
            legacy=("user_filter",),
        ),
    ] = ""
    experiment: Annotated[
        Line,
        FieldInfo(
            "Experiment contains",
            "Take only experiment folders whose name contains this text; empty takes all.",
            legacy=("experiment_filter",),
        ),
    ] = ""
    dataset: Annotated[
        Line,
        FieldInfo(
            "Dataset contains",
            "Take only dataset folders whose name contains this text; empty takes all.",
            legacy=("dataset_filter",),
        ),
    ] = ""
    ignore_older_than: Annotated[
        Age,
        FieldInfo(
            "Skip datasets older than",
            'Skip dataset folders older than this age, such as "6 months"; empty takes all.',
            legacy=("ignore_old_datasets", "ignore_interval_number", "ignore_interval_unit"),
        ),
    ] = ""
    ignore_newer_than: Annotated[
        Age,
        FieldInfo(
            "Skip datasets newer than",
            'Skip dataset folders younger than this age, such as "2 days"; empty takes all.',
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
            "How long a file must not have changed before it is taken; raise it for an "
            "instrument that pauses while it writes.",
            legacy=("ignore_new_files", "ignore_new_files_minutes"),
            unit="s",
        ),
    ] = 60.0
    includes: Annotated[
        tuple[Line, ...],
        FieldInfo("Include patterns", "Take only files that match one of these; empty takes all."),
    ] = ()
    excludes: Annotated[
        tuple[Line, ...],
        FieldInfo("Exclude patterns", "Leave out files that match one of these patterns."),
    ] = ()
    includes_file: Annotated[
        OptionalPath,
        FieldInfo(
            "File of include patterns",
            "A UTF-8 text file with include patterns, one a line.",
            legacy=("use_includes_file", "includes_file"),
        ),
    ] = None
    excludes_file: Annotated[
        OptionalPath,
        FieldInfo(
            "File of exclude patterns",
            "A UTF-8 text file with exclude patterns, one a line.",
            legacy=("use_excludes_file", "excludes_file"),
        ),
    ] = None
    default_ignores: Annotated[
        bool,
        FieldInfo(
            "Leave out system litter",
            "Whether files that systems and programs leave behind (Thumbs.db, .DS_Store, lock "
            "and temporary files) are left out.",
        ),
    ] = True
    symlinks: Annotated[
        Literal["skip", "files", "within"],
        FieldInfo(
            "Symbolic links",
            "Whether links are skipped, followed to files, or followed to files and folders "
            "within the data directory.",
        ),
    ] = "skip"


class Advanced(Section):
    """What hardly anybody has to change."""

    state_directory: Annotated[
        OptionalPath,
        FieldInfo(
            "State directory",
            "The folder for the ledger and other state; empty takes the system's usual place.",
        ),
    ] = None
    log_level: Annotated[
        Literal["DEBUG", "INFO", "WARNING", "ERROR"],
        FieldInfo("Log level", "How much the log says; DEBUG helps to find a fault."),
    ] = "INFO"
    register_batch: Annotated[
        int,
        Range(1, 500),
        FieldInfo("Records in a request", "How many records are made in one request at first."),
    ] = 25
    register_requests: Annotated[
        int,
        Range(1, 16),
        FieldInfo("Parallel registrations", "How many requests that make records run at once."),
    ] = 3
    verify_interval: Annotated[
        float,
        Range(0.01, 3600),
        FieldInfo(
            "Verification interval",
            "How long to wait at first before asking whether the server has verified files.",
            legacy=("verification_delay",),
            unit="s",
        ),
    ] = 1.0
    verify_patience: Annotated[
        float,
        Range(0, 7 * 86_400),
        FieldInfo(
            "Verification patience",
            "How long a run waits for the server's verification; "
            "the next run asks again for what is left.",
            unit="s",
        ),
    ] = 900.0
    pause_patience: Annotated[
        float,
        Range(0, 7 * 86_400),
        FieldInfo(
            "Pause patience",
            "How long a run waits while the server is away or the staging area is full, "
            "before it ends.",
            unit="s",
        ),
    ] = 600.0
    full_check_days: Annotated[
        float,
        Range(0, 366),
        FieldInfo(
            "Full check",
            "After how many days each datafile of the server is compared again with what is known "
            "of it here; 0 does so in every run. In between, one question for each dataset shows "
            "that none has gone.",
            unit="days",
        ),
    ] = 7.0


class Window(Section):
    """How the program shows itself."""

    start_at_login: Annotated[
        bool,
        FieldInfo(
            "Start at login",
            "Whether the program starts, in the tray, when somebody logs in.",
            legacy=("start_automatically_on_login",),
        ),
    ] = False
    opens: Annotated[
        Literal["normal", "minimized", "maximized", "tray"],
        FieldInfo(
            "Window at the start",
            "How the window shows itself when the program starts.",
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
            "The language of the window, from its next start on; messages of the engine and the "
            "server stay English.",
        ),
    ] = "system"
    close_to_tray: Annotated[
        bool,
        FieldInfo(
            "Go on when the window is closed",
            "Whether the program goes on in the tray, or as a small window where there is none, "
            "when its window is closed; if not, closing quits.",
        ),
    ] = True
    notify_finished: Annotated[
        bool, FieldInfo("Tell of uploads", "Whether a message tells that files were uploaded.")
    ] = True
    notify_problem: Annotated[
        bool,
        FieldInfo("Tell of problems", "Whether a message tells of problems that need somebody."),
    ] = True
    notify_approval: Annotated[
        bool,
        FieldInfo(
            "Tell of the approval",
            "Whether a message tells that the uploader awaits its approval, and that it has it.",
        ),
    ] = True
    notify_silence: Annotated[
        bool,
        FieldInfo(
            "Tell of silence",
            "Whether a message tells that no run has ended well for monitor.silent_hours.",
        ),
    ] = True


class Monitor(Section):
    """Signs of life, and the weekly notice."""

    notice_day: Annotated[
        Literal[Weekday, "never"],
        FieldInfo(
            "Weekly notice",
            'The day of the weekly notice "all is well" or "nothing came".',
        ),
    ] = "monday"
    signal_file: Annotated[
        OptionalPath,
        FieldInfo(
            "Signal file",
            "A file that is written after each run that ended well, for a monitor to look at.",
        ),
    ] = None
    signal_url: Annotated[
        Url,
        FieldInfo(
            "Signal address",
            "A web address that is called after each run that ended well (a dead man's switch).",
        ),
    ] = ""
    silent_hours: Annotated[
        int,
        Range(0, 8760),
        FieldInfo(
            "Silence",
            "After how many hours in which no run ended well, without a problem or a failed file, "
            "although one was tried, somebody is told; 0 never.",
            unit="h",
        ),
    ] = 48
