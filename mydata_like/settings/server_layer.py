"""The settings layer from the upload server: the settings it stores for this uploader.

MyTardis stores texts by key for each uploader. MyData wrote its own keys there, and an
administrator of the server may change or add some. Our dotted keys are accepted as well.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Final

from mydata_like.core.frozen import frozen
from mydata_like.settings.fields import parse_value
from mydata_like.settings.schema import Settings, check_values, settings_by_key

# Only this computer may set these. An attacker who controls the server must not be able to redirect
# uploads, to make us trust other hosts, to have files read that the user did not choose, to change
# the meaning of folders, or to disable the monitoring that reports missing data.
FORBIDDEN: Final = (
    "destination.*",
    "server.*",
    "instrument.uuid",
    "data.directory",
    "data.layout",
    "data.group_prefix",
    "data.unknown_owners",
    "data.replace_freely",
    "data.keep_replaced",
    "filters.includes_file",
    "filters.excludes_file",
    "filters.symlinks",
    "transfer.host_keys",
    "transfer.key_file",
    "transfer.ssh*",
    "transfer.folder",
    "transfer.s3*",
    "monitor.*",
    "window.*",
    "advanced.state_directory",
    "advanced.full_check_days",
)
# Values of other settings that the server may not set: no run would start any more.
FORBIDDEN_VALUES: Final[Mapping[str, tuple[object, ...]]] = {
    "schedule.kind": ("manual", "once"),
    "transfer.method": ("folder", "s3"),  # only this computer knows its folder and its access key
}
# The server may set these, and they are shown while they apply: which data are uploaded, when, how
# fast and as what.
SHOWN: Final = (
    "instrument.*",
    "filters.*",
    "schedule.*",
    "limits.*",
    "archive.rules",
    "transfer.method",
    "data.changed",
    "data.brake",
)
# The server may set these without notice: they change only the speed and the timeouts of a run.
QUIET: Final = (
    "transfer.channels",
    "transfer.ciphers",
    "transfer.compression",
    "transfer.find_zeros",
    "transfer.*_timeout",
    "transfer.attempts",
    "transfer.batch_*",
    "archive.size_limit",
    "advanced.log_level",
    "advanced.register_*",
    "advanced.verify_*",
    "advanced.pause_patience",
)
_SHOWN: Final = 60  # characters of the server's texts that messages repeat


@frozen(eq=False)
class ServerLayer:
    """Valid values by dotted key, their origin, and the time of their last change.

    `here` are the settings without this layer. `changed_at` is None if it is not known; then the
    user's file counts as newer.
    """

    values: Mapping[str, object]
    origin: str
    changed_at: datetime | None
    warnings: tuple[str, ...] = ()
    here: Settings = field(default_factory=Settings)


def read_server_layer(
    texts: Mapping[str, str], here: Settings, origin: str, changed_at: datetime | None
) -> ServerLayer:
    """Return the settings that the server's texts set, with warnings for the rejected ones.

    `here` are the settings without the server's. A forbidden setting causes a warning only if its
    value differs from the one in `here`.
    """
    # Only what a server has set needs it.
    from mydata_like.settings.mydata_cfg import Conversion, translate

    ours = {key: text for key, text in texts.items() if "." in key}
    translation = translate({key: text for key, text in texts.items() if "." not in key})
    values, warnings = dict(translation.values), []
    for old in translation.keys:
        if old.becoming in (Conversion.UNUSABLE, Conversion.UNKNOWN):
            warnings.append(f"{_short(old.name)} from the server is ignored: {old.reason}.")
    for key, text in ours.items():
        problem = _read(key, text, values)
        if problem:
            warnings.append(f"{_short(key)} from the server is ignored: {problem}.")
    warnings += _take_out_forbidden(values, here)
    return ServerLayer(values, origin, changed_at, tuple(warnings), here)


def _read(key: str, text: str, values: dict[str, object]) -> str:
    """Add the value of a dotted key; return what is wrong with it."""
    setting = settings_by_key().get(key)
    if setting is None:
        return "it is not a setting"
    value = parse_value(setting, text)
    _, problems = check_values({"server.allow_http": True, key: value})
    wrong = [problem.message for problem in problems if problem.key == key]
    if not wrong:
        values[key] = value
    return "; ".join(wrong)


def _take_out_forbidden(values: dict[str, object], here: Settings) -> Iterator[str]:
    for key in list(values):
        forbidden = matches(key, FORBIDDEN)
        if not forbidden and values[key] not in FORBIDDEN_VALUES.get(key, ()):
            continue
        value = values.pop(key)
        theirs, _ = check_values({"server.allow_http": True, key: value})
        same = theirs is not None and theirs.value(key) == here.value(key)
        if same or key == "instrument.uuid":
            continue
        if forbidden:
            yield f"{key} from the server is ignored: only this computer may set it."
        else:
            yield f"{key} from the server is ignored: only this computer may set it to {value}."


def matches(key: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a dotted key matches any of the patterns."""
    return any(fnmatchcase(key, pattern) for pattern in patterns)


def _short(text: str) -> str:
    return repr(text[:_SHOWN])[1:-1]
