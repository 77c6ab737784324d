"""Settings of where data go and which of them: server, instrument, data, filters."""

from collections.abc import Iterator
from typing import Annotated, Literal

from mydata_like.core.model import Layout
from mydata_like.settings.about import About
from mydata_like.settings.reading import Between
from mydata_like.settings.section import Section
from mydata_like.settings.values import (
    Age,
    Email,
    Line,
    OptionalPath,
    Proxy,
    Url,
    is_loopback,
    parse_url,
)


class Server(Section):
    """The upload server."""

    url: Annotated[
        Url,
        About(
            "Server address",
            "The web address of the MyTardis server, beginning with https://.",
            legacy=("mytardis_url",),
            required=True,
        ),
    ] = ""
    username: Annotated[
        Line,
        About(
            "Account",
            "The MyTardis account that uploads, usually a facility manager's; "
            "its API key is kept apart from the settings.",
            legacy=("username",),
            required=True,
        ),
    ] = ""
    ca_file: Annotated[
        OptionalPath,
        About(
            "Certificate authorities",
            "A PEM file with the certificate authorities to trust instead of the system's; "
            "needed where the server's certificate comes from an authority of your own.",
        ),
    ] = None
    proxy: Annotated[
        Proxy,
        About(
            "Proxy",
            "The address of the proxy on the way to the server, as in "
            "http://proxy.example.org:3128; empty takes the system's, none goes directly. One "
            "that wants a password is set in the environment (HTTPS_PROXY).",
        ),
    ] = ""
    allow_http: Annotated[
        bool,
        About(
            "Allow unencrypted http",
            "Whether an http:// address is accepted for a server on another machine; "
            "everybody on the way can then read the API key.",
        ),
    ] = False
    connect_timeout: Annotated[
        float,
        Between(0.1, 600),
        About(
            "Connection timeout",
            "How long to wait for the server to accept a connection; raise it on poor links.",
            legacy=("connection_timeout",),
            unit="s",
        ),
    ] = 10.0
    read_timeout: Annotated[
        float,
        Between(0.1, 3600),
        About(
            "Silence timeout",
            "How long the server may say nothing in the middle of a request.",
            unit="s",
        ),
    ] = 30.0
    deadline: Annotated[
        float,
        Between(0.1, 3600),
        About("Request deadline", "How long one request may take altogether.", unit="s"),
    ] = 120.0
    write_timeout: Annotated[
        float,
        Between(0.1, 7200),
        About(
            "Change timeout",
            "How long a request that changes something on the server may take. One whose answer "
            "was lost is not sent again before that, as the server may still be working on it.",
            unit="s",
        ),
    ] = 300.0
    requests: Annotated[
        int,
        Between(1, 16),
        About(
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
        About(
            "Instrument",
            "The name of the instrument as it shall appear on the server.",
            legacy=("instrument_name",),
            required=True,
        ),
    ] = ""
    facility: Annotated[
        Line,
        About(
            "Facility",
            "The name of the facility on the server that runs the instrument.",
            legacy=("facility_name",),
            required=True,
        ),
    ] = ""
    contact_name: Annotated[
        Line,
        About(
            "Contact name",
            "The person whom the server's administrators may ask about this uploader.",
            legacy=("contact_name",),
            required=True,
        ),
    ] = ""
    contact_email: Annotated[
        Email,
        About(
            "Contact e-mail",
            "The e-mail address of the contact person.",
            legacy=("contact_email",),
            required=True,
        ),
    ] = ""
    uuid: Annotated[
        Line,
        About(
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
        About(
            "Data directory",
            "The folder below which the instrument's data lie; nothing in it is ever changed.",
            legacy=("data_directory",),
            required=True,
        ),
    ] = None
    layout: Annotated[
        Layout,
        About(
            "Layout",
            "What each level of folders below the data directory stands for.",
            legacy=("folder_structure",),
        ),
    ] = Layout.USERNAME_DATASET
    group_prefix: Annotated[
        Line,
        About(
            "Group prefix",
            "Text put before the name of a user group's folder to get the group's name on "
            "the server; only for layouts with user groups.",
            legacy=("group_prefix",),
        ),
    ] = ""
    unknown_owners: Annotated[
        Literal["upload", "skip"],
        About(
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
        About(
            "Owner contains",
            "Take only owners' folders whose name contains this text; empty takes all.",
            legacy=("user_filter",),
        ),
    ] = ""
    experiment: Annotated[
        Line,
        About(
            "Experiment contains",
            "Take only experiment folders whose name contains this text; empty takes all.",
            legacy=("experiment_filter",),
        ),
    ] = ""
    dataset: Annotated[
        Line,
        About(
            "Dataset contains",
            "Take only dataset folders whose name contains this text; empty takes all.",
            legacy=("dataset_filter",),
        ),
    ] = ""
    ignore_older_than: Annotated[
        Age,
        About(
            "Skip datasets older than",
            'Skip dataset folders older than this age, such as "6 months"; empty takes all.',
            legacy=("ignore_old_datasets", "ignore_interval_number", "ignore_interval_unit"),
        ),
    ] = ""
    ignore_newer_than: Annotated[
        Age,
        About(
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
        Between(0, 30 * 86_400),
        About(
            "Settling time",
            "How long a file must not have changed before it is taken; raise it for an "
            "instrument that pauses while it writes.",
            legacy=("ignore_new_files", "ignore_new_files_minutes"),
            unit="s",
        ),
    ] = 60.0
    includes: Annotated[
        tuple[Line, ...],
        About("Include patterns", "Take only files that match one of these; empty takes all."),
    ] = ()
    excludes: Annotated[
        tuple[Line, ...],
        About("Exclude patterns", "Leave out files that match one of these patterns."),
    ] = ()
    includes_file: Annotated[
        OptionalPath,
        About(
            "File of include patterns",
            "A UTF-8 text file with include patterns, one a line.",
            legacy=("use_includes_file", "includes_file"),
        ),
    ] = None
    excludes_file: Annotated[
        OptionalPath,
        About(
            "File of exclude patterns",
            "A UTF-8 text file with exclude patterns, one a line.",
            legacy=("use_excludes_file", "excludes_file"),
        ),
    ] = None
    default_ignores: Annotated[
        bool,
        About(
            "Leave out system litter",
            "Whether files that systems and programs leave behind (Thumbs.db, .DS_Store, lock "
            "and temporary files) are left out.",
        ),
    ] = True
    symlinks: Annotated[
        Literal["skip", "files", "within"],
        About(
            "Symbolic links",
            "Whether links are skipped, followed to files, or followed to files and folders "
            "within the data directory.",
        ),
    ] = "skip"
