"""The identity of this installation, a uuid in its state folder."""

import uuid
from pathlib import Path

from mydata_like.app.settings_service import find_state
from mydata_like.core.errors import SettingsError
from mydata_like.settings.atomic_write import read_plain, write_private
from mydata_like.settings.schema import Settings
from mydata_like.state.paths import StatePaths


def uuid_file(settings: Settings, places: StatePaths) -> Path:
    """Return the file that holds the identity if it is not set in the settings."""
    return find_state(settings, places) / "uploader-uuid"


def ensure_uuid(settings: Settings, places: StatePaths) -> str:
    """Return this installation's identity; create it at the first start in the state folder."""
    found = find_uuid(settings, places)
    if found:
        return found
    made = str(uuid.uuid4())
    write_private(uuid_file(settings, places), f"{made}\n".encode())
    return made


def find_uuid(settings: Settings, places: StatePaths) -> str:
    """Return this installation's identity; empty if it has none yet."""
    if settings.instrument.uuid:
        return settings.instrument.uuid
    file = uuid_file(settings, places)
    try:
        return read_plain(file).decode("ascii").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"The identity of this installation cannot be read from {file}: {error}.",
            hint="Check its permissions. It holds one uuid, which is in the log of every run.",
        ) from error
