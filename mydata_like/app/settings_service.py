"""Loading and saving the settings and secrets of this installation, and finding its files."""

import hashlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from mydata_like.core.data_directory import WHOLE, Shard
from mydata_like.core.errors import Problem, SettingsError, UploaderError
from mydata_like.core.events import Event, Notice
from mydata_like.settings.fields import InvalidSettingsError, SettingProblem
from mydata_like.settings.layers import LayerSources, Loaded, preview_settings
from mydata_like.settings.layers import load_settings as load_layers
from mydata_like.settings.pending_changes import KeyStore, SecretKind
from mydata_like.settings.schema import Settings, find_missing, iter_settings
from mydata_like.settings.server_layer import read_server_layer
from mydata_like.settings.settings_file import edit_settings_file
from mydata_like.settings.values import server_origin
from mydata_like.state.paths import HOME as HOME
from mydata_like.state.paths import StatePaths, environment, is_protected
from mydata_like.state.paths import hand_over as hand_over
from mydata_like.state.secrets import (
    API_KEYS,
    S3_SECRETS,
    FileSecrets,
    KeyringSecrets,
    Owner,
    SecretSources,
    correct_modes,
    find_key,
    judge_folder,
    load_key,
    offer_key,
)
from mydata_like.state.secrets import Secret as Secret
from mydata_like.state.state_files import (
    APPROVAL,
    HEARTBEAT,
    SERVER_SETTINGS,
    ServerSettings,
    find_file,
    load_record,
)


def use_home(folder: str) -> None:
    """Use a folder for all of the program's own files, as the environment variable does."""
    os.environ[HOME] = folder  # channel workers inherit it


def find_places(config: Path | None = None) -> StatePaths:
    """Return the paths of this installation's files."""
    return StatePaths.chosen(os.environ, config)


def find_state(settings: Settings, places: StatePaths) -> Path:
    """Return the folder of the ledger, the locks and this installation's identity."""
    return settings.advanced.state_directory or places.state


def ledger_file(settings: Settings, places: StatePaths, root: bytes, shard: Shard = WHOLE) -> Path:
    """Return the ledger of this destination and data directory, protected by the directory's lock.

    Each data directory and shard has its own file, so a ledger never has two writers.
    """
    host = urlsplit(settings.server.url).netloc.replace(":", "_")
    if settings.destination.takes_tree:
        address = settings.destination.address.encode("utf-8", "surrogateescape")
        host = f"{settings.destination.kind}_{hashlib.sha256(address).hexdigest()[:8]}"
    directory = hashlib.sha256(os.path.realpath(root)).hexdigest()[:8]
    return find_state(settings, places) / shard.place / f"ledger-{host}-{directory}.db"


def prepare_places(settings: Settings, places: StatePaths) -> None:
    """Create the folders of this installation, including the state folder."""
    places.make_private(find_state(settings, places))


def correct_places(settings: Settings, places: StatePaths, emit: Callable[[Event], object]) -> None:
    """Remove the access of other accounts to existing files; report that, and what is left."""
    state = find_state(settings, places)
    for problem in (correct_modes(places, state), judge_folder(state)):
        if problem is not None:
            emit(Notice(problem=problem))


def report_former_values(
    reload: Callable[[], Loaded] | None, emit: Callable[[Event], object]
) -> None:
    """Report which settings have a value of an earlier version, and which value is used instead."""
    try:
        former = reload().former if reload else ()
    except UploaderError:  # the settings that were valid at the start stay in force
        return
    for warning in former:
        hint = "To remove this message, reset the setting or choose another value."
        emit(Notice(problem=Problem("settings.former", warning, hint)))


def load_settings(
    config: Path | None = None, assignments: Sequence[str] = (), *, must_exist: bool = True
) -> Loaded:
    """Return the validated settings of a file (the default one if None).

    Raises `SettingsError` with all problems, and, if it `must_exist`, for a missing file.
    """
    if must_exist and config is not None and not config.exists():
        raise SettingsError(
            f"The settings file {config} does not exist.",
            hint="Check the path after --config.",
        )
    loaded = load_layers(find_sources(config, assignments))
    file = server_settings_file(loaded.settings, find_places(config))
    kept = load_record(file, ServerSettings)
    if kept is not None and kept.texts:
        origin = urlsplit(loaded.settings.server.url).netloc
        if kept.changed_at:
            origin += f", changed {kept.changed_at.astimezone():%Y-%m-%d %H:%M}"
        layer = read_server_layer(kept.texts, loaded.settings, origin, kept.changed_at)
        loaded = load_layers(replace(loaded.sources, server=layer))
    managed = loaded.sources.managed
    if not managed or not loaded.locked_by or is_protected(managed):
        return loaded
    warning = f"{managed} locks settings, but users without administrator rights can change it."
    return replace(loaded, warnings=(*loaded.warnings, warning))


def heartbeat_file(settings: Settings, places: StatePaths) -> Path:
    """Return the file to which a watch writes its heartbeat."""
    return find_file(find_state(settings, places), HEARTBEAT)


def approval_file(settings: Settings, places: StatePaths) -> Path:
    """Return the file that stores our approval by the server in the settings."""
    return find_file(find_state(settings, places), APPROVAL, settings.server.url)


def server_settings_file(settings: Settings, places: StatePaths) -> Path:
    """Return the file that caches the server's settings for this uploader."""
    return find_file(find_state(settings, places), SERVER_SETTINGS, settings.server.url)


def find_legacy() -> Path | None:
    """Return the MyData.cfg of this computer, if there is one."""
    # Only who has used MyData needs it.
    from mydata_like.settings.mydata_cfg import usual_places

    places = usual_places(os.environ, sys.platform, Path.home())
    return next((place for place in places if place.is_file()), None)


def offer_takeover(settings: Settings, config: Path | None) -> str:
    """Return a hint to import MyData's settings while nothing is set yet, else an empty string."""
    required = [setting for setting in iter_settings() if setting.about.required]
    place = find_legacy() if len(find_missing(settings)) == len(required) else None
    if place is None:
        return ""
    option = f' --config "{config}"' if config else ""
    return f"MyData's settings are in {place}. Import them: mydata-like settings import{option}"


def save_settings(config: Path | None, changes: Mapping[str, object]) -> tuple[SettingProblem, ...]:
    """Change the user's settings file (None removes a key); return the remaining problems.

    Raises `SettingsError` and writes nothing if a key is locked, or if a change would cause a
    new problem.
    """
    sources = find_sources(config)
    before = _find_problems(sources, {})
    after = _find_problems(sources, changes)
    known = {(problem.key, problem.message) for problem in before if problem.key not in changes}
    if added := [entry for entry in after if (entry.key, entry.message) not in known]:
        raise InvalidSettingsError(added)
    edit_settings_file(sources.user, changes)
    return after


def _find_problems(
    sources: LayerSources, changes: Mapping[str, object]
) -> tuple[SettingProblem, ...]:
    try:
        preview_settings(sources, changes)
    except InvalidSettingsError as error:
        return error.problems
    return ()


def open_secrets(config: Path | None = None) -> SecretSources:
    """Return the places where the API key may be stored; none is accessed yet."""
    places = find_places(config)
    return SecretSources(environment(), FileSecrets(places.secrets_file), KeyringSecrets())


def find_api_key(settings: Settings, secrets: SecretSources) -> tuple[Secret, str]:
    """Return the API key and a description of its source; raises `SettingsError`."""
    return load_key(secrets, find_owner(settings, SecretKind.API_KEY))


def find_s3_secret(settings: Settings, secrets: SecretSources) -> tuple[Secret, str]:
    """Return the secret of the access key for object storage, and a description of its source."""
    return load_key(secrets, find_owner(settings, SecretKind.S3_SECRET), S3_SECRETS)


def locate_secret(settings: Settings, secrets: SecretSources, kind: SecretKind) -> str:
    """Return a description of where a secret is stored, empty if it is not stored.

    Raises `SettingsError` if the secret has no owner yet, or if a store cannot be used.
    """
    kinds = {SecretKind.API_KEY: API_KEYS, SecretKind.S3_SECRET: S3_SECRETS}
    found = find_key(secrets, find_owner(settings, kind), kinds[kind])
    return found[1] if found else ""


def store_api_key(settings: Settings, secrets: SecretSources, text: str, store: KeyStore) -> Owner:
    """Store the API key of the settings' account; a key in the keyring is removed from the file."""
    return _store_key(find_owner(settings, SecretKind.API_KEY), secrets, text, store)


def copy_api_key(settings: Settings, secrets: SecretSources, url: str) -> tuple[Owner, str]:
    """Use the account's key for another address of the server also for the present one.

    It is stored where it is found: return its owner, and "file" or "keyring". Raises
    `SettingsError` if there is none.
    """
    owner = find_owner(settings, SecretKind.API_KEY)
    former = Owner.of(url, owner.account)
    for store, name in ((secrets.file, "file"), (secrets.keyring, "keyring")):
        if secret := store.find(former):
            store.save(owner, secret)
            return owner, name
    raise SettingsError(
        f"There is no API key for {former.account} on {former.origin}.",
        hint=API_KEYS.advice,
        code=API_KEYS.code,
    )


def find_former_key(settings: Settings, secrets: SecretSources, url: str = "") -> str:
    """Return another address for which the account's API key is stored, if this one has none.

    The secrets file lists its addresses. A keyring does not: only `url` is looked up there.
    """
    try:
        owner = find_owner(settings, SecretKind.API_KEY)
    except SettingsError:
        return ""
    if _has_key(secrets, owner):
        return ""
    former = Owner.of(url, owner.account) if url else owner
    if former.origin != owner.origin and _has_key(secrets, former):
        return former.origin
    origins = secrets.file.find_origins(owner.account)
    return next((it for it in reversed(origins) if it != owner.origin), "")


def _has_key(secrets: SecretSources, owner: Owner) -> bool:
    try:
        return find_key(secrets, owner, API_KEYS) is not None
    except SettingsError:  # no keyring
        return False


def offer_former_key(settings: Settings, former: Settings, secrets: SecretSources) -> str:
    """Return how to use the key of the former address for the new one, if only that has a key."""
    origin = find_former_key(settings, secrets, former.server.url)
    return f"The API key is stored for {origin}. {offer_key(origin)}" if origin else ""


def store_s3_secret(
    settings: Settings, secrets: SecretSources, text: str, store: KeyStore
) -> Owner:
    """Store the secret of the settings' access key, as `store_api_key` does."""
    return _store_key(find_owner(settings, SecretKind.S3_SECRET), secrets, text, store)


def find_owner(settings: Settings, kind: SecretKind) -> Owner:
    """Return the owner of a secret; raises `SettingsError` if the settings do not name it."""
    if kind is SecretKind.API_KEY:
        return Owner.of(settings.server.url, settings.server.username)
    transfer = settings.transfer
    if not transfer.s3_access_key:
        raise SettingsError(
            "The access key for object storage is not set.",
            hint="Set transfer.s3_access_key to its id first.",
            code="s3.incomplete",
        )
    origin = server_origin(transfer.s3_endpoint) if transfer.s3_endpoint else "s3"
    return Owner(origin, transfer.s3_access_key)


def _store_key(owner: Owner, secrets: SecretSources, text: str, store: KeyStore) -> Owner:
    if store == "file":
        secrets.file.save(owner, Secret(text))
    else:
        secrets.keyring.save(owner, Secret(text))
        secrets.file.forget(owner)
    return owner


def find_sources(config: Path | None, assignments: Sequence[str] = ()) -> LayerSources:
    """Return the sources of this installation's settings."""
    places = find_places(config)
    return LayerSources(
        user=places.config_file,
        managed=places.managed_file,
        environment=environment(),
        assignments=assignments,
    )
