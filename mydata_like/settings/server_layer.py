"""The settings that the upload server keeps for this uploader, as one layer of ours.

MyTardis keeps texts by key for each uploader; MyData wrote its own keys there, and a server's
administrator may change or add some. Our dotted keys are understood as well.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Final

from mydata_like.core.values import dataclass
from mydata_like.settings.checking import check_values
from mydata_like.settings.legacy import translate
from mydata_like.settings.legacy_rules import Becoming
from mydata_like.settings.schema import Settings, settings_by_key
from mydata_like.settings.text import parse_value

# Whoever controls the server must not be able to send us elsewhere, to make us trust others, or
# to let us read what nobody here chose.
FORBIDDEN: Final = (
    "server.*",
    "instrument.uuid",
    "data.directory",
    "filters.includes_file",
    "filters.excludes_file",
    "filters.symlinks",
    "transfer.host_keys",
    "transfer.key_file",
    "transfer.ssh*",
    "monitor.signal_*",
    "window.*",
    "advanced.state_directory",
)
_SHOWN: Final = 60  # characters of what the server says that are repeated


@dataclass(frozen=True, slots=True)
class ServerLayer:
    """Values by dotted key, each right in itself; where they are from, and since when.

    `changed_at` is None where that is not known; then the user's own file is taken for newer.
    """

    values: Mapping[str, object]
    origin: str
    changed_at: datetime | None
    warnings: tuple[str, ...] = ()


def read_server_layer(
    texts: Mapping[str, str], here: Settings, origin: str, changed_at: datetime | None
) -> ServerLayer:
    """Return what the server's texts set; what they cannot is among the warnings.

    `here` are the settings without the server's. What it may not decide on is worth a word only
    where it says otherwise than they do.
    """
    ours = {key: text for key, text in texts.items() if "." in key}
    translation = translate({key: text for key, text in texts.items() if "." not in key})
    values, warnings = dict(translation.values), []
    for old in translation.keys:
        if old.becoming in (Becoming.UNUSABLE, Becoming.UNKNOWN):
            warnings.append(f"{_short(old.name)} from the server is ignored: {old.reason}.")
    for key, text in ours.items():
        problem = _read(key, text, values)
        if problem:
            warnings.append(f"{_short(key)} from the server is ignored: {problem}.")
    warnings += _take_out_forbidden(values, here)
    return ServerLayer(values, origin, changed_at, tuple(warnings))


def _read(key: str, text: str, values: dict[str, object]) -> str:
    """Add the value of a dotted key; return what is wrong with it."""
    setting = settings_by_key().get(key)
    if setting is None:
        return "there is no such setting"
    value = parse_value(setting, text)
    _, problems = check_values({"server.allow_http": True, key: value})
    wrong = [problem.message for problem in problems if problem.key == key]
    if not wrong:
        values[key] = value
    return "; ".join(wrong)


def _take_out_forbidden(values: dict[str, object], here: Settings) -> Iterator[str]:
    for key in list(values):
        if not any(fnmatchcase(key, pattern) for pattern in FORBIDDEN):
            continue
        theirs, _ = check_values({"server.allow_http": True, key: values.pop(key)})
        same = theirs is not None and theirs.value(key) == here.value(key)
        if not same and key != "instrument.uuid":
            yield f"{key} from the server is ignored: only this computer may decide on it."


def _short(text: str) -> str:
    return repr(text[:_SHOWN])[1:-1]
