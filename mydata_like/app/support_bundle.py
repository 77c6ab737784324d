"""The support bundle: logs, settings and facts for support, without any secrets."""

import json
import re
import shutil
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, get_args

from mydata_like.app.ledger_status import look_at_state
from mydata_like.app.settings_service import (
    find_api_key,
    find_places,
    find_s3_secret,
    find_state,
    load_settings,
    open_secrets,
)
from mydata_like.core.errors import RunError, UploaderError
from mydata_like.core.events import Event
from mydata_like.core.formatting import format_size
from mydata_like.core.resources import find_resources
from mydata_like.hostos.dependencies import describe_versions
from mydata_like.hostos.logs import Redaction, parse_line, read_end
from mydata_like.hostos.machine_info import describe_machine
from mydata_like.settings.fields import format_value
from mydata_like.settings.layers import Loaded, SettingSource
from mydata_like.settings.schema import Settings, iter_settings
from mydata_like.state.paths import API_KEY, S3_KEY, environment

LOGS: Final = ("mydata-like", "mydata-like-window")
LOG_BYTES: Final = 2_000_000  # at the end of each log
HIDDEN: Final = "(hidden)"
# Sections whose values contain names of folders and files.
_NAMING: Final = frozenset({"data", "filters", "archive"})
_CODE: Final = re.compile(r"code='([a-z-]+\.[a-z-]+)'")
_EVENT: Final = re.compile(rf"\b({'|'.join(kind.__name__ for kind in get_args(Event))})\(")
_OURS: Final = re.compile(r'  File ".*?(mydata_like[/\\][\w/\\]+\.py)", line (\d+), in (\w+)')
_RAISED: Final = re.compile(r"((?:\w+\.)*[A-Z]\w*(?:Error|Exception|Warning)|Cancelled)\b.*")
_README: Final = """\
This is a support bundle of mydata-like. It contains what is needed to diagnose a problem:
the end of the logs, the settings, the versions, the results of the last runs, and facts about
the computer. It does not contain API keys, passwords or private keys.
"""
_NAMES_HIDDEN: Final = """\
Names of files and folders were left out: each line of the logs has only its time, its level, its
origin in the program, and the kind of event or problem that it reports.
"""


class BundleDocument(NamedTuple):
    """One file of the bundle: its name and its text."""

    name: str
    text: str


def collect_documents(config: Path | None, *, names: bool) -> list[BundleDocument]:
    """Return the files of the bundle; without `names`, no names of files and folders.

    The server is not queried. Information that cannot be read is replaced by the reason.
    """
    redaction = Redaction()
    try:
        loaded = load_settings(config if config and config.exists() else None)
    except UploaderError as error:
        text = error.message if names else error.problem_code
        documents = [BundleDocument("settings.txt", f"The settings cannot be read: {text}\n")]
        settings = Settings()
    else:
        settings = loaded.settings
        for name in (API_KEY, S3_KEY):
            redaction.add(environment().get(name, ""))
        for find in (find_api_key, find_s3_secret):
            with suppress(UploaderError):
                redaction.add(find(settings, open_secrets(config))[0].reveal())
        documents = [
            BundleDocument("settings.txt", "".join(_describe_settings(loaded, names=names))),
            BundleDocument("state.json", _describe_state(settings, config, names=names)),
        ]
    readme = _README if names else _README + _NAMES_HIDDEN
    documents = [
        BundleDocument("README.txt", readme),
        BundleDocument("versions.txt", describe_versions()),
        BundleDocument("machine.txt", "".join(_describe_machine(settings, config))),
        *documents,
        *_read_logs(config, names=names),
    ]
    return [BundleDocument(name, redaction(text)) for name, text in documents]


def write_bundle(file: Path, documents: Iterable[BundleDocument]) -> None:
    """Write the bundle, readable by its owner only; raises `RunError` if that fails."""
    draft = file.with_name(f"{file.name}.new")
    try:
        draft.unlink(missing_ok=True)
        draft.touch(mode=0o600)
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as bundle:
            for document in documents:
                bundle.writestr(document.name, document.text)
        draft.replace(file)
    except OSError as error:
        raise RunError(
            f"The support bundle {file} cannot be written: {error.strerror or error}.",
            hint="Choose another folder, and check that the disk is not full.",
            code="support.unwritable",
        ) from error


def _describe_machine(settings: Settings, config: Path | None) -> Iterator[str]:
    facts = describe_machine()
    yield f"system: {facts.os_system} {facts.os_release} ({facts.os_version})\n"
    yield f"machine: {facts.machine}, {facts.cpus} processors, {facts.memory} of memory\n"
    state = find_state(settings, find_places(config))
    for name, folder in (("state", state), ("data", settings.data.directory)):
        if folder is not None:
            try:
                usage = shutil.disk_usage(folder)
                told = f"{format_size(usage.free)} free of {format_size(usage.total)}"
            except OSError as error:
                told = str(error.strerror or "unknown")
            yield f"disk of {name}: {told}\n"


def _describe_settings(loaded: Loaded, *, names: bool) -> Iterator[str]:
    """Yield every setting with its value and its source."""
    for setting in iter_settings():
        entry = loaded.explain(setting.key)
        origin = f" ({entry.winner.origin})" if names and entry.winner.origin else ""
        locked = ", locked" if entry.locked_by else ""
        yield f"{setting.key} = {_show_value(entry, names=names)}\n"
        yield f"    from: {entry.winner.source}{origin}{locked}\n"
    if names:
        yield from (f"warning: {warning}\n" for warning in loaded.warnings)


def _show_value(entry: SettingSource, *, names: bool) -> str:
    text = format_value(entry.setting, entry.value)
    section = entry.setting.key.partition(".")[0]
    telling = isinstance(entry.value, str | Path | tuple)
    if not text or names or not telling:
        return _without_query(text)
    hidden = section in _NAMING or isinstance(entry.value, Path)
    return HIDDEN if hidden and entry.value != entry.setting.default else _without_query(text)


def _without_query(text: str) -> str:
    """Return addresses without path and query, which may contain secrets."""
    return re.sub(r"(https?://[^/\s,]+)/[^\s,]{16,}", rf"\1/{HIDDEN}", text)


def _describe_state(settings: Settings, config: Path | None, *, names: bool) -> str:
    try:
        record: object = look_at_state(settings, config).as_record()
    except UploaderError as error:
        record = {"problem": error.problem_code}
    return json.dumps(record if names else _without_words(record), indent=1) + "\n"


# The keys of sentences and of names of sources.
_WORDS: Final = frozenset(("message", "hint", "path", "owner", "experiment", "dataset"))


def _without_words(value: Any) -> Any:
    """Return values without sentences of problems and other texts that name files."""
    if isinstance(value, dict):
        return {key: _without_words(member) for key, member in value.items() if key not in _WORDS}
    return [_without_words(member) for member in value] if isinstance(value, list) else value


def _read_logs(config: Path | None, *, names: bool) -> Iterator[BundleDocument]:
    folder = find_places(config).logs
    for name in LOGS:
        text = read_end(folder / f"{name}.log", LOG_BYTES)
        if text:
            shown = text if names else "".join(map(_without_names, text.splitlines()))
            yield BundleDocument(f"{name}.log", shown)


def _without_names(text: str) -> str:
    """Return the parts of a log line that cannot name a file, by an allow list."""
    line = parse_line(text, "")
    kept = [*_EVENT.findall(line.text), *_CODE.findall(line.text)]
    if line.at:
        return f"{line.at} {line.level:<8} {line.origin}: {' '.join(kept) or HIDDEN}\n"
    if found := _OURS.match(text):
        return f"  {found[1]}, line {found[2]}, in {found[3]}\n"
    raised = _RAISED.fullmatch(text)
    return f"{raised[1]}\n" if raised else ""


_PAGE: Final = "troubleshooting.md"
_LINK: Final = re.compile(r"\[([^\]]+)\]\([^)]+\)")


def find_advice(code: str) -> tuple[str, ...]:
    """Return the paragraphs of the troubleshooting page that name a code, or all of its family.

    Paragraphs contain no line breaks.
    """
    paragraphs = _read_page().get(code.partition(".")[0], ())
    return tuple(text for text in paragraphs if f"`{code}`" in text) or paragraphs


@cache
def _read_page() -> dict[str, tuple[str, ...]]:
    """Return the paragraphs of the page by the family of codes, without the targets of links."""
    page = find_resources() / "docs" / _PAGE  # of the installed program
    if not page.is_file():
        page = find_resources().parent / "docs" / _PAGE
    sections = r"^## (.+)\n\n((?:(?!## ).*\n?)+)"
    found: dict[str, tuple[str, ...]] = {}
    for heading, text in re.findall(sections, page.read_text(encoding="utf-8"), re.MULTILINE):
        parts = re.split(r"\n\n|\n(?=- )", text.strip())
        plain = tuple(" ".join(_LINK.sub(r"\1", part).split()) for part in parts)
        found |= dict.fromkeys(heading.split(", "), plain)
    return found
