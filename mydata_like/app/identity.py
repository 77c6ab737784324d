"""A new identity for an installation that was copied: another uuid, another key."""

import uuid
from pathlib import Path

from mydata_like.app.connection import ensure_uuid, uuid_file
from mydata_like.app.settings import find_places, load_settings, prepare_places, save_settings
from mydata_like.core.errors import SettingsError
from mydata_like.settings.atomic_write import write_private
from mydata_like.settings.schema import Settings
from mydata_like.ssh.keys import create_key


def renew_identity(settings: Settings, config: Path | None) -> str:
    """Give this installation a uuid and a key of its own, and return the uuid.

    The old key stays beside the new one. A key that the settings name is left alone, as other
    programs may use it; the settings name none afterwards. Raises SettingsError where the
    settings' file does not decide on either.
    """
    places = find_places(config)
    prepare_places(settings, places)
    old, new = ensure_uuid(settings, places), str(uuid.uuid4())
    changes = {
        key: value
        for key, value, was in (
            ("instrument.uuid", new, settings.instrument.uuid),
            ("transfer.key_file", None, settings.transfer.key_file),
        )
        if was
    }
    if changes:
        save_settings(config, changes)
    _require_changed(load_settings(config).settings, new)
    if places.key_file.exists():
        places.key_file.rename(places.key_file.with_name(f"{places.key_file.name}.of-{old}"))
    create_key(places.key_file)
    write_private(uuid_file(settings, places), f"{new}\n".encode())
    return new


def _require_changed(settings: Settings, new: str) -> None:
    if settings.instrument.uuid in ("", new) and not settings.transfer.key_file:
        return
    raise SettingsError(
        "The identity of this installation is not decided by its own settings file.",
        hint="See where it comes from with: mydata-like settings explain instrument.uuid, "
        "and the same for transfer.key_file. Change it there.",
    )
