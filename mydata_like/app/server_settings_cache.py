"""The settings that the server has for this uploader: fetching, caching and applying them."""

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

# The settings that cause each skip reason and that a server may set.
FILTERS: Final = {
    "skipped.pattern": ("filters.includes", "filters.excludes"),
    "skipped.filtered": ("filters.owner", "filters.experiment", "filters.dataset"),
    "skipped.old": ("filters.ignore_older_than",),
    "skipped.young": ("filters.ignore_newer_than",),
    "skipped.ignored": ("filters.default_ignores",),
}


class ServerSettingsCache:
    """The server's settings for this uploader, cached for when it is unavailable."""

    def __init__(self, file: Path, clock: Clock) -> None:
        self._file = file
        self._clock = clock

    def keep(self, record: UploaderRecord) -> bool:
        """Store the server's current settings; return whether they have changed."""
        now, before = self._clock.now(), load_record(self._file, ServerSettings)
        texts, updated = record.settings, record.settings_updated
        if before is None:
            after = first_seen(texts, updated, now)
        else:
            after = before.renew(texts, updated, now)
        save_record(self._file, after)
        return texts != (before.texts if before else {})

    def needs_clock(self, record: UploaderRecord) -> bool:
        """Return whether the time of the last change of the server's settings is unknown."""
        kept = load_record(self._file, ServerSettings)
        return bool(record.settings) and (kept is None or kept.offset is None)

    def learn_clock(self, before: UploaderRecord, written: UploaderRecord) -> None:
        """Learn the offset of the server's clock from the time of a write that was just made."""
        now = self._clock.now()
        kept = load_record(self._file, ServerSettings)
        if kept is None:
            kept = first_seen(before.settings, before.settings_updated, now)
        save_record(self._file, kept.learn(written.settings_updated, now))


def open_server_settings(
    settings: Settings, places: StatePaths, clock: Clock
) -> ServerSettingsCache:
    """Return the cache for the server in these settings."""
    return ServerSettingsCache(server_settings_file(settings, places), clock)


def refresh_settings(
    connection: Connection, settings: Settings, places: StatePaths, clock: Clock
) -> bool:
    """Fetch the server's settings; return whether they have changed.

    If the request fails, the cached settings are kept.
    """
    uuid = find_uuid(settings, places)
    if not uuid or "mydata_uploader" not in connection.resources:
        return False
    try:
        record = connection.uploaders.look_up(uuid)
    except ItemError:
        return False
    return record is not None and open_server_settings(settings, places, clock).keep(record)


def report_change(loaded: Loaded, emit: Emit) -> None:
    """Report that the server's settings have changed, and which of them are ignored."""
    layer = loaded.sources.server
    used = sorted(layer.values) if layer else []
    names = ", ".join(used) or "none"
    message = f"The server's settings for this uploader have changed. It now sets: {names}."
    hint = "To see which value is used, run: mydata-like settings explain KEY"
    emit(Notice(problem=Problem("settings.from-server", message, hint)))
    for warning in layer.warnings if layer else ():
        emit(Notice(problem=Problem("settings.server-ignored", warning)))


def with_server_filters_marked(emit: Emit, reload: Callable[[], Loaded] | None) -> Emit:
    """Return an `emit` that marks files left out by the server's filters as such.

    The user of this computer did not choose to leave them out.
    """
    keys = _find_server_filters(reload)
    if not keys:
        return emit

    def forward(event: Event) -> None:
        if isinstance(event, FileSkipped | FolderSkipped) and event.problem.code in keys:
            event = replace(event, problem=_by_server(keys[event.problem.code]))
        emit(event)

    return forward


def _find_server_filters(reload: Callable[[], Loaded] | None) -> dict[str, str]:
    """Return the filters that the server sets, by the problem code that they cause."""
    try:
        loaded = reload() if reload else None
    except UploaderError:  # the settings that were valid at the start stay in force
        return {}
    if loaded is None:
        return {}
    theirs = {decision.setting.key for decision in loaded.find_server_decisions()}
    chosen = {code: [key for key in keys if key in theirs] for code, keys in FILTERS.items()}
    return {code: ", ".join(keys) for code, keys in chosen.items() if keys}


def _by_server(keys: str) -> Problem:
    return Problem(
        "skipped.by-server",
        f"The server's settings exclude this: {keys}.",
        "Ask the facility's administrator whether this is intended, or set it here.",
    )
