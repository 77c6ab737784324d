"""The one list of settings."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from mydata_like.core.model import Layout


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Server(Section):
    url: str = ""
    username: str = ""
    ca_file: Path | None = None
    allow_http: bool = False
    connect_timeout: float = 10.0
    read_timeout: float = 30.0
    deadline: float = 120.0
    requests: int = 4


class Instrument(Section):
    name: str = ""
    facility: str = ""
    contact_name: str = ""
    contact_email: str = ""
    uuid: str = ""


class Data(Section):
    directory: Path | None = None
    layout: Layout = Layout.USERNAME_DATASET
    group_prefix: str = ""
    unknown_owners: Literal["upload", "skip"] = "upload"


class Filters(Section):
    owner: str = ""
    experiment: str = ""
    dataset: str = ""
    ignore_older_than: str = ""
    ignore_newer_than: str = ""
    settle_seconds: float = 60.0
    includes: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    includes_file: Path | None = None
    excludes_file: Path | None = None
    default_ignores: bool = True
    symlinks: Literal["skip", "files", "within"] = "skip"


class Transfer(Section):
    method: Literal["auto", "ssh", "http"] = "auto"
    ssh_stack: Literal["auto", "libssh", "paramiko"] = "auto"
    channels: int = 0
    ciphers: tuple[str, ...] = (
        "aes128-gcm@openssh.com",
        "aes256-gcm@openssh.com",
        "aes128-ctr",
        "chacha20-poly1305@openssh.com",
    )
    host_keys: tuple[str, ...] = ()
    key_file: Path | None = None
    connect_timeout: float = 10.0
    stall_timeout: float = 60.0
    attempts: int = 5
    batch_below: int = 1024 * 1024
    batch_bytes: int = 16 * 1024 * 1024
    batch_files: int = 1000
    batch_age: float = 2.0


class Schedule(Section):
    """Filled later."""


class Advanced(Section):
    state_directory: Path | None = None
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    register_batch: int = 25
    register_requests: int = 3
    verify_interval: float = 1.0
    verify_patience: float = 900.0


class Settings(Section):
    server: Server = Server()
    instrument: Instrument = Instrument()
    data: Data = Data()
    filters: Filters = Filters()
    transfer: Transfer = Transfer()
    schedule: Schedule = Schedule()
    advanced: Advanced = Advanced()
