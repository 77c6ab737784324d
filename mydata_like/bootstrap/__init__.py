"""The composition root: settings in, working parts out.

A part is imported when it is first asked for: a run loads no wizard, the window no engine.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # the same once more, for who reads imports: type checker, contracts, bundles
    from mydata_like.bootstrap.copying import Copying as Copying
    from mydata_like.bootstrap.copying import find_settings_kind as find_settings_kind
    from mydata_like.bootstrap.copying import plan_copying as plan_copying
    from mydata_like.bootstrap.editing import CHANGED_ELSEWHERE as CHANGED_ELSEWHERE
    from mydata_like.bootstrap.editing import Edition as Edition
    from mydata_like.bootstrap.editing import Proposal as Proposal
    from mydata_like.bootstrap.editing import apply_key_change as apply_key_change
    from mydata_like.bootstrap.editing import export_settings as export_settings
    from mydata_like.bootstrap.editing import locate_api_key as locate_api_key
    from mydata_like.bootstrap.editing import open_draft as open_draft
    from mydata_like.bootstrap.editing import read_proposal as read_proposal
    from mydata_like.bootstrap.editing import save_edition as save_edition
    from mydata_like.bootstrap.examining import SpeedOrder as SpeedOrder
    from mydata_like.bootstrap.examining import SpeedTest as SpeedTest
    from mydata_like.bootstrap.examining import load_speed_tests as load_speed_tests
    from mydata_like.bootstrap.examining import open_speed_test as open_speed_test
    from mydata_like.bootstrap.file_status import find_files as find_files
    from mydata_like.bootstrap.file_status import find_status as find_status
    from mydata_like.bootstrap.file_status import suggest as suggest
    from mydata_like.bootstrap.freeing import Freeing as Freeing
    from mydata_like.bootstrap.freeing import Onlooker as Onlooker
    from mydata_like.bootstrap.freeing import open_freeing as open_freeing
    from mydata_like.bootstrap.identity import renew_identity as renew_identity
    from mydata_like.bootstrap.importing import ApiKeyFate as ApiKeyFate
    from mydata_like.bootstrap.importing import Kept as Kept
    from mydata_like.bootstrap.importing import OldSshKey as OldSshKey
    from mydata_like.bootstrap.importing import Takeover as Takeover
    from mydata_like.bootstrap.importing import carry_over as carry_over
    from mydata_like.bootstrap.importing import plan_takeover as plan_takeover
    from mydata_like.bootstrap.job import Audience as Audience
    from mydata_like.bootstrap.job import Job as Job
    from mydata_like.bootstrap.job import Order as Order
    from mydata_like.bootstrap.job import open_job as open_job
    from mydata_like.bootstrap.monitoring import send_signals as send_signals
    from mydata_like.bootstrap.preview import Preview as Preview
    from mydata_like.bootstrap.preview import Sample as Sample
    from mydata_like.bootstrap.preview import preview_layout as preview_layout
    from mydata_like.bootstrap.registration import Admission as Admission
    from mydata_like.bootstrap.registration import HostKey as HostKey
    from mydata_like.bootstrap.registration import fetch_server_settings as fetch_server_settings
    from mydata_like.bootstrap.registration import load_trusting as load_trusting
    from mydata_like.bootstrap.registration import register as register
    from mydata_like.bootstrap.registration import trust_host as trust_host
    from mydata_like.bootstrap.service import apply_autostart as apply_autostart
    from mydata_like.bootstrap.settings import find_api_key as find_api_key
    from mydata_like.bootstrap.settings import find_places as find_places
    from mydata_like.bootstrap.settings import load_settings as load_settings
    from mydata_like.bootstrap.settings import offer_takeover as offer_takeover
    from mydata_like.bootstrap.settings import open_secrets as open_secrets
    from mydata_like.bootstrap.settings import save_settings as save_settings
    from mydata_like.bootstrap.settings import store_api_key as store_api_key
    from mydata_like.bootstrap.setup import Beginning as Beginning
    from mydata_like.bootstrap.setup import Login as Login
    from mydata_like.bootstrap.setup import OwnKey as OwnKey
    from mydata_like.bootstrap.setup import Reached as Reached
    from mydata_like.bootstrap.setup import check_account as check_account
    from mydata_like.bootstrap.setup import check_address as check_address
    from mydata_like.bootstrap.setup import find_beginning as find_beginning
    from mydata_like.bootstrap.setup import list_facilities as list_facilities
    from mydata_like.bootstrap.setup import list_instruments as list_instruments
    from mydata_like.bootstrap.setup import show_key as show_key
    from mydata_like.bootstrap.sources import Conflict as Conflict
    from mydata_like.bootstrap.sources import SourcePreview as SourcePreview
    from mydata_like.bootstrap.sources import find_conflicts as find_conflicts
    from mydata_like.bootstrap.sources import find_source_of as find_source_of
    from mydata_like.bootstrap.sources import find_speed as find_speed
    from mydata_like.bootstrap.sources import find_unfinished_sources as find_unfinished_sources
    from mydata_like.bootstrap.sources import preview_sources as preview_sources
    from mydata_like.bootstrap.sources import remove_source as remove_source
    from mydata_like.bootstrap.sparing import go_second as go_second
    from mydata_like.bootstrap.state import RUNS_SHOWN as RUNS_SHOWN
    from mydata_like.bootstrap.state import State as State
    from mydata_like.bootstrap.state import look_at_state as look_at_state
    from mydata_like.bootstrap.surroundings import open_log as open_log
    from mydata_like.bootstrap.surroundings import warn_of_ignored as warn_of_ignored
    from mydata_like.bootstrap.takeover_report import Paragraph as Paragraph
    from mydata_like.bootstrap.takeover_report import describe_takeover as describe_takeover
    from mydata_like.bootstrap.trial import Result as Result
    from mydata_like.bootstrap.trial import Step as Step
    from mydata_like.bootstrap.trial import try_out as try_out
    from mydata_like.bootstrap.watching import Onlookers as Onlookers
    from mydata_like.bootstrap.watching import WatchOrder as WatchOrder
    from mydata_like.bootstrap.watching import heartbeat_file as heartbeat_file
    from mydata_like.bootstrap.watching import keep_watch as keep_watch
    from mydata_like.store.environment import hand_over as hand_over
    from mydata_like.store.heartbeat import Heartbeat as Heartbeat
    from mydata_like.store.paths import HOME as HOME
    from mydata_like.store.rows import PastRun as PastRun
    from mydata_like.store.secrets import Secret as Secret
    from mydata_like.system.clock import SystemClock as SystemClock
    from mydata_like.system.program import find_program as find_program
    from mydata_like.transfer.extraction import extract_member as extract_member
    from mydata_like.transfer.extraction import verify_member as verify_member
    from mydata_like.transfer.unarchive import ArchiveFile as ArchiveFile

_HOMES: Final = {
    "bootstrap.copying": "Copying find_settings_kind plan_copying",
    "bootstrap.editing": (
        "CHANGED_ELSEWHERE Edition Proposal apply_key_change export_settings locate_api_key "
        "open_draft read_proposal save_edition"
    ),
    "bootstrap.examining": "SpeedOrder SpeedTest load_speed_tests open_speed_test",
    "bootstrap.file_status": "find_files find_status suggest",
    "bootstrap.freeing": "Freeing Onlooker open_freeing",
    "bootstrap.identity": "renew_identity",
    "bootstrap.importing": "ApiKeyFate Kept OldSshKey Takeover carry_over plan_takeover",
    "bootstrap.job": "Audience Job Order open_job",
    "bootstrap.monitoring": "send_signals",
    "bootstrap.preview": "Preview Sample preview_layout",
    "bootstrap.registration": (
        "Admission HostKey fetch_server_settings load_trusting register trust_host"
    ),
    "bootstrap.service": "apply_autostart",
    "bootstrap.settings": (
        "find_api_key find_places load_settings offer_takeover open_secrets save_settings "
        "store_api_key"
    ),
    "bootstrap.setup": (
        "Beginning Login OwnKey Reached check_account check_address find_beginning "
        "list_facilities list_instruments show_key"
    ),
    "bootstrap.sources": (
        "Conflict SourcePreview find_conflicts find_source_of find_speed "
        "find_unfinished_sources preview_sources remove_source"
    ),
    "bootstrap.sparing": "go_second",
    "bootstrap.state": "RUNS_SHOWN State look_at_state",
    "bootstrap.surroundings": "open_log warn_of_ignored",
    "bootstrap.takeover_report": "Paragraph describe_takeover",
    "bootstrap.trial": "Result Step try_out",
    "bootstrap.watching": "Onlookers WatchOrder heartbeat_file keep_watch",
    "store.environment": "hand_over",
    "store.heartbeat": "Heartbeat",
    "store.rows": "PastRun",
    "store.paths": "HOME",
    "store.secrets": "Secret",
    "system.clock": "SystemClock",
    "system.program": "find_program",
    "transfer.extraction": "extract_member verify_member",
    "transfer.unarchive": "ArchiveFile",
}
_HOME_OF: Final = {part: home for home, parts in _HOMES.items() for part in parts.split()}


def __getattr__(part: str) -> object:
    """Import a part from its home, and keep it."""
    if part not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {part!r}")
    found: object = getattr(import_module(f"mydata_like.{_HOME_OF[part]}"), part)
    globals()[part] = found
    return found
