"""The composition root: settings in, working parts out."""

from mydata_like.bootstrap.copying import Copying, find_settings_kind, plan_copying
from mydata_like.bootstrap.editing import (
    CHANGED_ELSEWHERE,
    Edition,
    KeyWish,
    Proposal,
    export_settings,
    locate_api_key,
    open_draft,
    read_proposal,
    save_edition,
)
from mydata_like.bootstrap.freeing import Freeing, Onlooker, open_freeing
from mydata_like.bootstrap.identity import renew_identity
from mydata_like.bootstrap.importing import (
    ApiKeyFate,
    Kept,
    OldSshKey,
    Takeover,
    carry_over,
    plan_takeover,
)
from mydata_like.bootstrap.job import Audience, Job, Order, open_job
from mydata_like.bootstrap.monitoring import send_signals
from mydata_like.bootstrap.preview import Preview, Sample, preview_layout
from mydata_like.bootstrap.registration import (
    Admission,
    HostKey,
    fetch_server_settings,
    load_trusting,
    register,
    trust_host,
)
from mydata_like.bootstrap.service import apply_autostart
from mydata_like.bootstrap.settings import (
    find_api_key,
    find_places,
    load_settings,
    offer_takeover,
    open_secrets,
    save_settings,
    store_api_key,
)
from mydata_like.bootstrap.setup import (
    Beginning,
    Login,
    OwnKey,
    Reached,
    check_account,
    check_address,
    find_beginning,
    list_facilities,
    list_instruments,
    show_key,
)
from mydata_like.bootstrap.sources import (
    Conflict,
    SourcePreview,
    find_conflicts,
    find_source_of,
    find_speed,
    find_unfinished_sources,
    preview_sources,
)
from mydata_like.bootstrap.sparing import go_second
from mydata_like.bootstrap.state import State, look_at_state
from mydata_like.bootstrap.surroundings import open_log
from mydata_like.bootstrap.takeover_report import Paragraph, describe_takeover
from mydata_like.bootstrap.trial import Result, Step, try_out
from mydata_like.bootstrap.watching import Onlookers, WatchOrder, heartbeat_file, keep_watch
from mydata_like.bootstrap.whereabouts import Whereabouts, find_whereabouts
from mydata_like.store.heartbeat import Heartbeat
from mydata_like.store.ledger import PastRun
from mydata_like.store.paths import HOME
from mydata_like.store.secrets import Secret
from mydata_like.system.clock import SystemClock
from mydata_like.system.program import find_program
from mydata_like.transfer.extraction import extract_member, verify_member
from mydata_like.transfer.unarchive import ArchiveFile

__all__ = [
    "CHANGED_ELSEWHERE",
    "HOME",
    "Admission",
    "ApiKeyFate",
    "ArchiveFile",
    "Audience",
    "Beginning",
    "Conflict",
    "Copying",
    "Edition",
    "Freeing",
    "Heartbeat",
    "HostKey",
    "Job",
    "Kept",
    "KeyWish",
    "Login",
    "OldSshKey",
    "Onlooker",
    "Onlookers",
    "Order",
    "OwnKey",
    "Paragraph",
    "PastRun",
    "Preview",
    "Proposal",
    "Reached",
    "Result",
    "Sample",
    "Secret",
    "SourcePreview",
    "State",
    "Step",
    "SystemClock",
    "Takeover",
    "WatchOrder",
    "Whereabouts",
    "apply_autostart",
    "carry_over",
    "check_account",
    "check_address",
    "describe_takeover",
    "export_settings",
    "extract_member",
    "fetch_server_settings",
    "find_api_key",
    "find_beginning",
    "find_conflicts",
    "find_places",
    "find_program",
    "find_settings_kind",
    "find_source_of",
    "find_speed",
    "find_unfinished_sources",
    "find_whereabouts",
    "go_second",
    "heartbeat_file",
    "keep_watch",
    "list_facilities",
    "list_instruments",
    "load_settings",
    "load_trusting",
    "locate_api_key",
    "look_at_state",
    "offer_takeover",
    "open_draft",
    "open_freeing",
    "open_job",
    "open_log",
    "open_secrets",
    "plan_copying",
    "plan_takeover",
    "preview_layout",
    "preview_sources",
    "read_proposal",
    "register",
    "renew_identity",
    "save_edition",
    "save_settings",
    "send_signals",
    "show_key",
    "store_api_key",
    "trust_host",
    "try_out",
    "verify_member",
]
