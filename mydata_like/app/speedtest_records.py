"""The kept speed tests, and the settings that the latest one recommends.

It is apart from `speedtest_service`, whose imports take 20 MiB of the window's memory.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mydata_like.app.settings_service import find_places, find_state, load_settings, save_settings
from mydata_like.core.errors import RunError
from mydata_like.settings.layers import Layer
from mydata_like.settings.schema import Settings
from mydata_like.state.state_files import SPEED_TESTS, add_speed_test, find_file, read_speed_tests


def load_speed_tests(settings: Settings, config: Path | None) -> list[Mapping[str, Any]]:
    """Return the speed tests, latest last, in the format of `doctor --json`."""
    return read_speed_tests(_find_file(settings, config))


def keep_speed_test(settings: Settings, config: Path | None, record: Mapping[str, object]) -> None:
    """Store a test, or the settings that were changed after it, for comparison with later ones."""
    add_speed_test(_find_file(settings, config), record)


def apply_advice(settings: Settings, config: Path | None) -> dict[str, Any]:
    """Save the settings that the latest test recommends; return its record.

    Its `proof` has what was changed, and the values in the user's file before that. Those of an
    earlier call are kept, so that all of them can be restored. Settings that are locked, or have
    the recommended value, stay as they are. Raises `RunError` if there is no test with comparisons,
    since earlier versions recommended what they had not seen.
    """
    try:
        record = dict(load_speed_tests(settings, config)[-1])
        won = [one for one in record["findings"]["compared"] if one["won"]]
        advised = {key: value for one in won for key, value in one["changes"].items()}
        earlier = record.get("proof") or {"changes": {}, "replaced": {}}
    except (LookupError, TypeError, AttributeError) as error:
        raise RunError(
            "There is no earlier speed test to continue from.",
            hint="Run a new one.",
            code="speed.no-test",
        ) from error
    loaded = load_settings(config)
    if order := advised.get("transfer.ciphers"):
        ciphers = loaded.settings.transfer.ciphers
        known = [cipher for cipher in order if cipher in ciphers]
        advised["transfer.ciphers"] = [*known, *(one for one in ciphers if one not in known)]
    changes = {}
    for key, value in advised.items():
        now = loaded.settings.value(key)
        if key not in loaded.locked_by and (list(now) if isinstance(now, tuple) else now) != value:
            changes[key] = value
    record["proof"] = record.get("proof")
    if changes:
        given = {
            key: {one.source: one.value for one in loaded.given.get(key, ())} for key in changes
        }
        replaced = {key: values.get(Layer.USER) for key, values in given.items()}
        save_settings(config, changes)
        record["proof"] = {
            "changes": earlier["changes"] | changes,
            "replaced": earlier["replaced"] | replaced,
        }
        keep_speed_test(settings, config, record)
    return record


def _find_file(settings: Settings, config: Path | None) -> Path:
    return find_file(find_state(settings, find_places(config)), SPEED_TESTS)
