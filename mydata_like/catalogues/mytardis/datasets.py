"""The experiment and the dataset for each dataset folder, found on the server or created."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, Protocol

from mydata_like.catalogues.mytardis.server_api import ExperimentDraft, ServerAPI
from mydata_like.core.errors import Problem, RejectedError
from mydata_like.core.events import Notice
from mydata_like.core.frozen import frozen
from mydata_like.core.model import (
    Dataset,
    DatasetFolder,
    DatasetId,
    Experiment,
    ExperimentId,
    Facility,
    Group,
    InstrumentRecord,
    OwnerKind,
    User,
)
from mydata_like.core.parsing import parse_json
from mydata_like.core.ports import Emit
from mydata_like.engine.catalogue import FolderExcludedError
from mydata_like.engine.pipeline import Lock, SingleFlight
from mydata_like.settings.schema import Data

_UNUSED: Final = "unused"  # ledger key of the objects on the server that stay empty


# MyData's text for owners unknown to the server, kept so that experiments that MyData created for
# them are found again.
UNKNOWN_OWNER = "USER NOT FOUND IN MYTARDIS"


@frozen(kw_only=True)
class Identity:
    """The sender: the account, its facility and instrument, and this installation."""

    account: User
    facility: Facility
    instrument: InstrumentRecord
    uploader: str  # uuid
    origin: str  # "host:data directory", included in the descriptions of experiments


class UnusedObject(NamedTuple):
    """An experiment or a dataset (`kind`) that this uploader created and that stays empty."""

    kind: str
    id: int
    name: str


class FactStore(Protocol):
    """The facts about this installation in the ledger."""

    def find_meta(self, key: str) -> str | None: ...

    def record_meta(self, key: str, value: str) -> None: ...


class UnusedObjects:
    """The unused objects that the server did not let us remove, as noted in the ledger."""

    def __init__(self, facts: FactStore) -> None:
        self._facts = facts
        self._lock = Lock()

    def load(self) -> tuple[UnusedObject, ...]:
        """Return those that are noted."""
        try:
            rows = parse_json(self._facts.find_meta(_UNUSED) or "[]")
            return tuple(
                UnusedObject(str(kind), int(number), str(name)) for kind, number, name in rows
            )
        except (ValueError, TypeError):  # not in our format
            return ()

    def add(self, found: UnusedObject) -> None:
        """Note one."""
        with self._lock:
            self._save([*self.load(), found])

    def forget(self, is_gone: Callable[[str, int], bool]) -> None:
        """Forget those that were removed in the meantime; usually there are none to ask about."""
        if noted := self.load():
            self._save([it for it in noted if not is_gone(it.kind, it.id)])

    def _save(self, noted: Sequence[UnusedObject]) -> None:
        self._facts.record_meta(_UNUSED, json.dumps(noted))


@frozen()
class _Holder:
    """The owner of a folder, as far as the server has it."""

    user: User | None
    group: Group | None


class Datasets:
    """The server's experiments and datasets by dataset folder, each created once.

    With `dry_run` nothing is created: missing ones get the id 0.
    """

    def __init__(
        self,
        server: ServerAPI,
        identity: Identity,
        settings: Data,
        emit: Emit,
        *,
        dry_run: bool = False,
        unused: "UnusedObjects | None" = None,
    ) -> None:
        self._server = server
        self._unused = unused
        self._emit = emit
        self._identity = identity
        self._settings = settings
        self._dry_run = dry_run
        self._holders: SingleFlight[tuple[OwnerKind, str, str], _Holder] = SingleFlight()
        self._experiments: SingleFlight[ExperimentDraft, Experiment] = SingleFlight()
        self._datasets: SingleFlight[ExperimentId, dict[str, Dataset]] = SingleFlight()
        self._made: SingleFlight[tuple[ExperimentId, str], Dataset] = SingleFlight()

    def find_dataset(self, folder: DatasetFolder) -> Dataset:
        """Return the folder's dataset, creating it if it is missing.

        Raises `FolderExcludedError` for a folder to be excluded, and the errors of `ServerAPI`.
        """
        key = (folder.owner_kind, folder.owner, folder.group_folder)
        holder = self._holders(key, lambda: self._find_holder(folder))
        titles = self._titles(folder, holder)
        draft = self._draft(folder, titles[0])
        experiment = self._experiments(draft, lambda: self._find_experiment(draft, titles, holder))
        if not experiment.id:
            return Dataset(DatasetId(0), folder.name)
        known = self._datasets(experiment.id, lambda: self._fetch_datasets(experiment))
        if folder.name in known:
            return known[folder.name]
        if self._dry_run:
            return Dataset(DatasetId(0), folder.name)
        return self._made(
            (experiment.id, folder.name), lambda: self._create_dataset(experiment, folder.name)
        )

    def _create_dataset(self, experiment: Experiment, name: str) -> Dataset:
        made = self._server.create_dataset(experiment, name, self._identity.instrument)
        if made.left:
            self._report_duplicate("dataset", name, made.id, made.left)
        return replace(made, left=None)

    def _find_holder(self, folder: DatasetFolder) -> _Holder:
        user, group = self._find_user(folder), None
        if folder.group_folder:
            group = self._server.find_group(self._settings.group_prefix + folder.group_folder)
        unknown = user is None or (folder.group_folder and group is None)
        if unknown and self._settings.unknown_owners == "skip":
            name = folder.group_folder if user else folder.owner
            raise FolderExcludedError(
                f"The server has no user or group for the folder {name}.",
                hint="Rename the folder, ask the facility to add the user or group, or set "
                "data.unknown_owners to upload such folders under the facility's account.",
                code="skipped.owner",
            )
        return _Holder(user, group)

    def _find_user(self, folder: DatasetFolder) -> User | None:
        match folder.owner_kind:
            case OwnerKind.ACCOUNT:
                return self._identity.account
            case OwnerKind.USERNAME:
                return self._server.find_user(folder.owner)
            case OwnerKind.EMAIL:
                return self._server.find_user_by_email(folder.owner)

    def _titles(self, folder: DatasetFolder, holder: _Holder) -> list[str]:
        """Return the title of the folder's experiment, then other titles that it may have.

        MyData joins first name, space and last name as they are, including blanks at the ends, and
        uses the folder's name if both are blank. Earlier versions of this program removed the
        blanks.
        """
        instrument, user = self._identity.instrument.name, holder.user
        if folder.title is not None:
            return [folder.title]
        if user is None:
            return [f"{instrument} - {folder.owner} ({UNKNOWN_OWNER})"]
        raw = user.raw_name or user.full_name
        names = [raw, user.full_name]
        if not raw.strip():
            names = [folder.owner or user.username, user.username, ""]
        return list(dict.fromkeys(f"{instrument} - {name}" for name in names))

    def _draft(self, folder: DatasetFolder, title: str) -> ExperimentDraft:
        instrument = self._identity.instrument.name
        user_folder = folder.owner or self._identity.account.username
        lines = [
            f"Instrument: {instrument}",
            f"User folder name: {user_folder}",
            f"Uploaded from: {self._identity.origin}",
        ]
        if folder.group_folder:
            lines.append(f"Group folder name: {folder.group_folder}")
        return ExperimentDraft(
            title=title,
            description="\n".join(lines),
            layout=self._settings.layout.value,
            user_folder=user_folder,
            group_folder=folder.group_folder,
            uploader=self._identity.uploader,
        )

    def _find_experiment(
        self, draft: ExperimentDraft, titles: Sequence[str], holder: _Holder
    ) -> Experiment:
        spellings = (self._server.find_experiment(draft._replace(title=it)) for it in titles)
        found = next(filter(None, spellings), None)
        if found is not None and (self._dry_run or not self._is_unfinished(found)):
            return found
        if self._dry_run:
            return Experiment(ExperimentId(0), draft.title)
        made = found or self._server.create_experiment(draft)
        if made.left:
            self._report_duplicate("experiment", draft.title, made.id, made.left)
        for owner in self._owners(holder):
            self._grant(made, owner)
        return made

    def _report_duplicate(self, kind: str, name: str, used: int, left: int) -> None:
        """Report that another uploader created the same just before, and that ours stays."""
        message = (
            f"Another uploader created the {kind} {name} at the same time. Both use the older one "
            f"(id {used}); the one with the id {left} stays empty."
        )
        hint = "The server's administrator may delete the empty one."
        if self._unused is not None:
            self._unused.add(UnusedObject(kind, left, name))
        self._emit(Notice(problem=Problem("server.made-twice", message, hint)))

    def _is_unfinished(self, experiment: Experiment) -> bool:
        """Return whether an earlier run may have been killed before it had added the owners.

        The first dataset is created after that, and adding an owner twice has no effect.
        """
        return experiment.empty and self._identity.uploader in experiment.marks

    def _grant(self, experiment: Experiment, owner: User | Group) -> None:
        """Add an owner; if the server fails to, the data is uploaded all the same."""
        try:
            self._server.grant(experiment, owner)
        except RejectedError as error:
            message = f"The experiment {experiment.title} could not be shared: {error.message}"
            self._emit(Notice(problem=Problem(error.problem_code, message, error.hint)))

    def _owners(self, holder: _Holder) -> list[User | Group]:
        """Return the owners of a new experiment besides the account that creates it."""
        managers = self._identity.facility.manager_group
        owners: list[User | Group] = [managers]
        if holder.user and holder.user.id != self._identity.account.id:
            owners.append(holder.user)
        if holder.group and holder.group.id != managers.id:
            owners.append(holder.group)
        return owners

    def _fetch_datasets(self, experiment: Experiment) -> dict[str, Dataset]:
        datasets = self._server.fetch_datasets(experiment, self._identity.instrument)
        # If several have the same name, MyData used the first.
        return {dataset.name: dataset for dataset in reversed(datasets)}
