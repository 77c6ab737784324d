"""The settings that the server keeps for this uploader: fetched, kept, and made to count."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from mydata_like.app.connection import Connection, find_uuid
from mydata_like.app.settings_service import server_settings_file
from mydata_like.core.errors import ItemError, Problem, UploaderError
from mydata_like.core.events import Event, FileSkipped, FolderSkipped, Notice
from mydata_like.core.ports import Clock, Emit
from mydata_like.server.uploader import UploaderRecord
from mydata_like.settings.layers import Loaded
from mydata_like.settings.schema import Settings
from mydata_like.state.paths import StatePaths
from mydata_like.state.state_files import ServerSettings, first_seen, load_record, save_record

# The settings behind each reason to leave a file or folder out that a server may set.
FILTERS: Final = {
    "skipped.pattern": ("filters.includes", "filters.excludes"),
    "skipped.filtered": ("filters.owner", "filters.experiment", "filters.dataset"),
    "skipped.old": ("filters.ignore_older_than",),
    "skipped.young": ("filters.ignore_newer_than",),
    "skipped.ignored": ("filters.default_ignores",),
}


class ServerSettingsCache:
    """What the server sets for this uploader, kept for when it is away."""

    def __init__(self, file: Path, clock: Clock) -> None:
        self._file = file
        self._clock = clock

    def keep(self, record: UploaderRecord) -> bool:
        """Keep what the server says now; return whether it said something else before."""
        now, before = self._clock.now(), load_record(self._file, ServerSettings)
        texts, updated = record.settings, record.settings_updated
        if before is None:
            after = first_seen(texts, updated, now)
        else:
            after = before.renew(texts, updated, now)
        save_record(self._file, after)
        return texts != (before.texts if before else {})

    def needs_clock(self, record: UploaderRecord) -> bool:
        """Return whether nobody knows when settings that the server keeps were changed."""
        kept = load_record(self._file, ServerSettings)
        return bool(record.settings) and (kept is None or kept.offset is None)

    def learn_clock(self, before: UploaderRecord, written: UploaderRecord) -> None:
        """Learn from the time that the server wrote just now, when it was asked to."""
        now = self._clock.now()
        kept = load_record(self._file, ServerSettings)
        if kept is None:
            kept = first_seen(before.settings, before.settings_updated, now)
        save_record(self._file, kept.learn(written.settings_updated, now))


def open_mirror(settings: Settings, places: StatePaths, clock: Clock) -> ServerSettingsCache:
    """Return what is kept of the server of these settings."""
    return ServerSettingsCache(server_settings_file(settings, places), clock)


def refresh_settings(
    connection: Connection, settings: Settings, places: StatePaths, clock: Clock
) -> bool:
    """Ask the server for its settings; return whether they are others than before.

    A server that cannot say leaves all as it was.
    """
    uuid = find_uuid(settings, places)
    if not uuid or "mydata_uploader" not in connection.resources:
        return False
    try:
        record = connection.uploaders.look_up(uuid)
    except ItemError:
        return False
    return record is not None and open_mirror(settings, places, clock).keep(record)


def tell_change(loaded: Loaded, emit: Emit) -> None:
    """Tell that the server's settings were changed, and what of them is of no use."""
    layer = loaded.sources.server
    used = sorted(layer.values) if layer else []
    names = ", ".join(used) or "none"
    message = f"The server's settings for this uploader were changed; it sets now: {names}."
    hint = "Which value counts tells: mydata-like settings explain KEY"
    emit(Notice(problem=Problem("settings.from-server", message, hint)))
    for warning in layer.warnings if layer else ():
        emit(Notice(problem=Problem("settings.server-ignored", warning)))


def telling_of_server_filters(emit: Emit, reload: Callable[[], Loaded] | None) -> Emit:
    """Return what passes events on; what the server's filters leave out is told as theirs.

    Nobody at this computer has chosen that, so it is not left out on purpose.
    """
    keys = _find_server_filters(reload)
    if not keys:
        return emit

    def tell(event: Event) -> None:
        if isinstance(event, FileSkipped | FolderSkipped) and event.problem.code in keys:
            event = replace(event, problem=_by_server(keys[event.problem.code]))
        emit(event)

    return tell


def _find_server_filters(reload: Callable[[], Loaded] | None) -> dict[str, str]:
    """Return the filters that the server's settings decide, by the code that they lead to."""
    try:
        loaded = reload() if reload else None
    except UploaderError:  # the settings that were right when the run began count on
        return {}
    if loaded is None:
        return {}
    theirs = {decision.setting.key for decision in loaded.find_server_decisions()}
    chosen = {code: [key for key in keys if key in theirs] for code, keys in FILTERS.items()}
    return {code: ", ".join(keys) for code, keys in chosen.items() if keys}


def _by_server(keys: str) -> Problem:
    return Problem(
        "skipped.by-server",
        f"The server's settings leave this out: {keys}.",
        "Ask the facility's administrator whether that is meant, or set it here.",
    )
