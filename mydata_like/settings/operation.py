"""Settings of how and when the work is done: transfer, schedule, advanced."""

import datetime
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from mydata_like.settings.about import About
from mydata_like.settings.content import Section, wrong
from mydata_like.settings.values import Cipher, Fingerprint, OptionalPath, once_each

Weekday = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


def _check_ciphers(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        raise ValueError("must name at least one cipher")
    return once_each("cipher")(names)


def _check_local(time: datetime.time) -> datetime.time:
    if time.tzinfo is not None:
        raise ValueError("must be a local time without a zone, such as 18:30:00")
    return time


LocalTime = Annotated[datetime.time, AfterValidator(_check_local)]


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
    ssh_stack: Annotated[
        Literal["auto", "libssh", "paramiko"],
        About(
            "SSH implementation",
            "Which implementation of SSH to use; the fastest one that works when automatic.",
        ),
    ] = "auto"
    channels: Annotated[
        int,
        Field(ge=0, le=32),
        About(
            "Channels",
            "How many transfers run at once; 0 finds a good number by itself.",
            legacy=("max_upload_threads",),
        ),
    ] = 0
    ciphers: Annotated[
        tuple[Cipher, ...],
        AfterValidator(_check_ciphers),
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
        AfterValidator(once_each("fingerprint")),
        About(
            "Trusted host keys",
            "Fingerprints (SHA256:...) of the staging hosts' keys, as their administrator "
            "gives them; a listed key is trusted without asking.",
        ),
    ] = ()
    key_file: Annotated[
        OptionalPath,
        About(
            "Private key",
            "The uploader's private SSH key when it is not the one made at the first start.",
        ),
    ] = None
    connect_timeout: Annotated[
        float,
        Field(ge=0.1, le=600),
        About(
            "Connection timeout",
            "How long to wait for a staging host to accept a connection.",
            unit="s",
        ),
    ] = 10.0
    stall_timeout: Annotated[
        float,
        Field(ge=0.1, le=3600),
        About(
            "Stall timeout",
            "How long a transfer may make no progress before its connection is given up.",
            unit="s",
        ),
    ] = 60.0
    attempts: Annotated[
        int,
        Field(ge=1, le=100),
        About(
            "Attempts",
            "How often a transfer is tried in one run before its files count as failed.",
            legacy=("max_upload_retries",),
        ),
    ] = 5
    batch_below: Annotated[
        int,
        Field(ge=0, le=64 * 1024 * 1024),
        About(
            "Batch files below",
            "Files smaller than this travel together; 0 sends each file alone.",
            unit="bytes",
        ),
    ] = 1024 * 1024
    batch_bytes: Annotated[
        int,
        Field(ge=1, le=1024 * 1024 * 1024),
        About("Batch size", "A batch is sent off when it holds this much.", unit="bytes"),
    ] = 16 * 1024 * 1024
    batch_files: Annotated[
        int,
        Field(ge=1, le=10_000),
        About("Files in a batch", "A batch is sent off when it holds this many files."),
    ] = 1000
    batch_age: Annotated[
        float,
        Field(ge=0, le=60),
        About("Batch age", "A batch is sent off when its first file has waited so long.", unit="s"),
    ] = 2.0


class Schedule(Section):
    """When runs start by themselves."""

    kind: Annotated[
        Literal["manual", "startup", "saved", "once", "daily", "weekly", "timer"],
        About(
            "Start runs",
            "When runs start: by hand, with the program, when settings are saved, once, daily, "
            "weekly, or every so many minutes.",
            legacy=("schedule_type",),
        ),
    ] = "manual"
    date: Annotated[
        datetime.date | None,
        About("Date", "The day of a run that starts once.", legacy=("scheduled_date",)),
    ] = None
    time: Annotated[
        LocalTime,
        About(
            "Time",
            "The local time of day at which runs start once, daily or weekly.",
            legacy=("scheduled_time",),
        ),
    ] = datetime.time(0, 0)
    days: Annotated[
        tuple[Weekday, ...],
        AfterValidator(once_each("day")),
        About(
            "Days",
            "The days of the week of weekly runs.",
            legacy=(
                "monday_checked",
                "tuesday_checked",
                "wednesday_checked",
                "thursday_checked",
                "friday_checked",
                "saturday_checked",
                "sunday_checked",
            ),
        ),
    ] = ()
    minutes: Annotated[
        int,
        Field(ge=1, le=1440),
        About(
            "Every",
            "The minutes from one start of the timer to the next.",
            legacy=("timer_minutes",),
            unit="min",
        ),
    ] = 15
    from_time: Annotated[
        LocalTime,
        About(
            "From",
            "The local time of day from which the timer starts runs.",
            legacy=("timer_from_time",),
        ),
    ] = datetime.time(0, 0)
    to_time: Annotated[
        LocalTime,
        About(
            "To",
            "The local time of day until which the timer starts runs; "
            "earlier than the start means past midnight.",
            legacy=("timer_to_time",),
        ),
    ] = datetime.time(23, 59)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.kind == "once" and self.date is None:
            raise wrong("date", "must be given before schedule.kind can be once")
        if self.kind == "weekly" and not self.days:
            raise wrong("days", "must name a day before schedule.kind can be weekly")
        return self


class Advanced(Section):
    """What hardly anybody has to change."""

    state_directory: Annotated[
        OptionalPath,
        About(
            "State directory",
            "The folder for the ledger and other state; empty takes the system's usual place.",
        ),
    ] = None
    log_level: Annotated[
        Literal["DEBUG", "INFO", "WARNING", "ERROR"],
        About("Log level", "How much the log says; DEBUG helps to find a fault."),
    ] = "INFO"
    register_batch: Annotated[
        int,
        Field(ge=1, le=500),
        About("Records in a request", "How many records are made in one request at first."),
    ] = 25
    register_requests: Annotated[
        int,
        Field(ge=1, le=16),
        About("Parallel registrations", "How many requests that make records run at once."),
    ] = 3
    verify_interval: Annotated[
        float,
        Field(ge=0.01, le=3600),
        About(
            "Verification interval",
            "How long to wait at first before asking whether the server has verified files.",
            legacy=("verification_delay",),
            unit="s",
        ),
    ] = 1.0
    verify_patience: Annotated[
        float,
        Field(ge=0, le=7 * 86_400),
        About(
            "Verification patience",
            "How long a run waits for the server's verification; "
            "the next run asks again for what is left.",
            unit="s",
        ),
    ] = 900.0
    pause_patience: Annotated[
        float,
        Field(ge=0, le=7 * 86_400),
        About(
            "Pause patience",
            "How long a run waits while the server is away or the staging area is full, "
            "before it ends.",
            unit="s",
        ),
    ] = 600.0
