"""`HttpServer`: the engine's `ServerAPI` over the REST API of MyTardis and its MyData app."""

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

import orjson

from mydata_like.catalogues.mytardis.client import ApiClient, OtherBytesError, Query, decode_json
from mydata_like.catalogues.mytardis.get_or_create import GetOrCreate
from mydata_like.catalogues.mytardis.http import HttpRequest, HttpResponse
from mydata_like.catalogues.mytardis.http_upload import answer_timeout
from mydata_like.catalogues.mytardis.serializers import (
    ShapeError,
    acl_document,
    check_text,
    expect,
    experiment_document,
    is_of_draft,
    page_parser,
    parse_datafile,
    parse_dataset,
    parse_experiment,
    parse_facility,
    parse_group,
    parse_instrument,
    parse_resources,
    parse_set,
    parse_stats,
    parse_user,
    registration_document,
)
from mydata_like.catalogues.mytardis.server_api import ExperimentDraft
from mydata_like.core.errors import (
    ItemError,
    RejectedError,
    SettingsError,
    TransientError,
    UnansweredError,
)
from mydata_like.core.model import (
    Datafile,
    DatafileId,
    Dataset,
    DatasetId,
    DatasetStats,
    Experiment,
    ExperimentId,
    Facility,
    Group,
    InstrumentRecord,
    NewestDatafile,
    Registration,
    User,
)


def is_from_the_application(reply: HttpResponse) -> bool:
    """Return whether a 500 is MyTardis's own, after which nothing is stored, not a proxy's."""
    try:
        answer = decode_json(reply.body)
    except ValueError:
        return False
    return isinstance(answer, dict) and "error_message" in answer


logger = logging.getLogger(__name__)
T = TypeVar("T")

UNUSED_SECONDS: Final = 10.0  # within which an object that we created is removed again, if at all
_SET: Final = 300  # ids in one request: the server limits the request line to 4094 bytes


class HttpServer:
    """The REST API of a MyTardis server with its MyData app; implements `ServerAPI`."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._once = GetOrCreate(client)

    def fetch_resources(self) -> frozenset[str]:
        resources = self._client.find("", parse_resources)
        if resources is None:
            raise SettingsError(
                f"{self._client.wire.host} does not seem to be a MyTardis server.",
                hint="Check the server address in the settings.",
                code="server.not-mytardis",
            )
        return resources

    def fetch_account(self) -> User:
        return self._client.prove(within=0).user

    def fetch_groups(self) -> frozenset[str]:
        """Return the names of the groups that our account belongs to."""
        return frozenset(self._client.prove().groups.values())

    def find_user(self, username: str) -> User | None:
        def parse_new_name(answer: Any) -> str:
            return expect(answer, "username", str) if expect(answer, "success", bool) else ""

        found = self._look_up_user(username)
        if found is None:  # the server may record that the account was renamed
            name = self._client.find("mydata_user/", parse_new_name, {"username": username})
            if name and name != username:
                found = self._look_up_user(name)
        return self._proved(found)

    def find_user_by_email(self, email: str) -> User | None:
        users = self._rows("user/", parse_user, {"email__iexact": email})
        found = _first(users, lambda user: user.email.casefold() == email.casefold())
        if found is None and len(users) == 1 and not users[0].email:
            found = users[0]  # found by an address that only privileged accounts can read
        return self._proved(found)

    def find_group(self, name: str) -> Group | None:
        groups = self._rows("group/", parse_group, {"name": name})
        return self._proved(_first(groups, lambda group: group.name == name))

    def fetch_facilities(self) -> list[Facility]:
        pages = self._client.pages("facility/", parse_facility, {})
        facilities = [facility for page in pages for facility in page]
        if not facilities:
            self._client.prove()
        return facilities

    def find_instrument(self, facility: Facility, name: str) -> InstrumentRecord | None:
        """Return the facility's instrument of this name."""
        query: Query = {"facility__id": facility.id, "name": name}
        instruments = self._rows("instrument/", parse_instrument, query)
        return _first(instruments, lambda instrument: instrument.name == name)

    def list_instruments(self, facility: Facility) -> list[InstrumentRecord]:
        """Return the facility's instruments."""
        query: Query = {"facility__id": facility.id}
        pages = self._client.pages("instrument/", parse_instrument, query)
        return [instrument for page in pages for instrument in page]

    def ensure_instrument(self, facility: Facility, name: str) -> InstrumentRecord:
        check_text("The instrument's name", name, 100)

        def make() -> InstrumentRecord:
            document = {"facility": self._client.wire.uri("facility", facility.id), "name": name}
            return self._client.create("instrument/", document, parse_instrument)

        return self._once.ensure(
            ("instrument", facility.id, name), lambda: self.find_instrument(facility, name), make
        )

    def find_experiment(self, draft: ExperimentDraft) -> Experiment | None:
        return self._proved(self._look_up_experiment(draft))

    def create_experiment(self, draft: ExperimentDraft) -> Experiment:
        check_text("The experiment's title", draft.title, 400)

        def make() -> Experiment:
            begun = self._client.now()
            document = experiment_document(draft)
            made = self._client.create("mydata_experiment/", document, parse_experiment)
            first = self._choose_experiment(draft, made)
            if first.id == made.id or self._remove_unused("experiment", made.id, begun):
                return first
            return replace(first, left=made.id)

        return self._once.ensure(
            ("experiment", draft.title, draft.user_folder, draft.group_folder),
            lambda: self._look_up_experiment(draft),
            make,
        )

    def grant(self, experiment: Experiment, holder: User | Group) -> None:
        uri = self._client.wire.uri("experiment", experiment.id)
        document = acl_document(experiment.id, uri, holder)
        try:
            # A lost reply does no harm: the request is idempotent.
            self._client.change("POST", "objectacl/", document)
        except RejectedError as error:
            if error.problem_code != "server.not-found":
                raise
            raise RejectedError(
                f"The server does not support sharing the experiment {experiment.title}.",
                hint="Set its owners on the server's web pages.",
                code="server.no-acl",
            ) from error

    def fetch_datasets(self, experiment: Experiment, instrument: InstrumentRecord) -> list[Dataset]:
        datasets = self._look_up_datasets(experiment, instrument, {})
        if not datasets:
            # Without permission, the list is empty; only the experiment itself returns an error.
            self._client.fetch(f"experiment/{experiment.id}/", parse_experiment)
            self._client.prove()
        return datasets

    def list_datasets(self, experiment: ExperimentId) -> list[Dataset]:
        """Return all datasets of an experiment."""
        pages = self._client.pages("dataset/", parse_dataset, {"experiments__id": experiment})
        return [dataset for page in pages for dataset in page]

    def create_dataset(
        self, experiment: Experiment, name: str, instrument: InstrumentRecord
    ) -> Dataset:
        check_text("The dataset's name", name, 4000)

        def find() -> Dataset | None:
            datasets = self._look_up_datasets(experiment, instrument, {"description": name})
            return _first(datasets, lambda dataset: dataset.name == name)

        def make() -> Dataset:
            uri = self._client.wire.uri
            document = {
                "description": name,
                "experiments": [uri("experiment", experiment.id)],
                "instrument": uri("instrument", instrument.id),
                "immutable": False,
            }
            begun = self._client.now()
            made = self._client.create("dataset/", document, parse_dataset)
            # Another uploader may have created it concurrently: both then use the older one.
            first = find() or made
            if first.id == made.id or self._remove_unused("dataset", made.id, begun):
                return first
            return replace(first, left=made.id)

        return self._once.ensure(("dataset", experiment.id, instrument.id, name), find, make)

    def _remove_unused(self, kind: str, number: int, begun: float) -> bool:
        """Remove an object that was just created and is not used; return whether that worked.

        It must be empty, and so new that no other uploader can have sent anything for it. Many
        servers do not allow it.
        """
        inside = {
            "experiment": ("dataset/", {"experiments__id": number}),
            "dataset": ("mydata_dataset_file/", {"dataset__id": number}),
        }
        path, query = inside[kind]
        try:
            page = self._client.fetch(path, page_parser(lambda row: row), {**query, "limit": 1})
            if page.total or self._client.now() - begun > UNUSED_SECONDS:
                return False
            reply = self._client.submit(HttpRequest("DELETE", f"{kind}/{number}/"))
            self._client.check(reply, (200, 202, 204))
        except ItemError as error:
            logger.info("The unused %s %d stays on the server: %s", kind, number, error)
            return False
        return True

    def is_gone(self, kind: str, number: int) -> bool:
        """Return whether an experiment or a dataset was removed."""
        return self._client.find(f"{kind}/{number}/", lambda row: expect(row, "id", int)) is None

    def fetch_stats(self, dataset: DatasetId) -> DatasetStats | None:
        return self._client.find(f"mydata_dataset_stats/{dataset}/", parse_stats)

    def fetch_newest(self, dataset: DatasetId, total: int) -> NewestDatafile:
        query: Query = {"dataset__id": dataset, "limit": 1, "offset": max(0, total - 1)}
        page = self._client.fetch("mydata_dataset_file/", page_parser(_parser(dataset)), query)
        if not page.total:
            self._client.prove()
        # The answer of a server that ignores the limit says nothing about the last one.
        ids = [number for number, row in page.rows if row.dataset == dataset]
        return NewestDatafile(page.total, ids[0] if len(page.rows) == len(ids) == 1 else 0)

    def list_datafiles(self, dataset: DatasetId, offset: int = 0) -> Iterator[Datafile]:
        def parse(row: Any) -> Datafile:
            record = parse_record(row)
            if record.dataset != dataset:
                raise ShapeError("a datafile of another dataset")
            return record

        empty, parse_record = True, _parser(dataset)
        query: Query = {"dataset__id": dataset}
        for page in self._client.pages("mydata_dataset_file/", parse, query, offset):
            empty = empty and not page
            yield from page
        if empty and not offset:
            self._client.fetch(f"dataset/{dataset}/", parse_dataset)
            self._client.prove()

    def fetch_datafiles(self, ids: Sequence[DatafileId]) -> list[Datafile]:
        found: list[Datafile] = []
        for start in range(0, len(ids), _SET):
            asked = ";".join(str(number) for number in ids[start : start + _SET])
            found += self._client.fetch(f"mydata_dataset_file/set/{asked}/", parse_set)
        return found

    def find_datafiles(self, dataset: DatasetId, name: str) -> list[Datafile]:
        query: Query = {"dataset__id": dataset, "filename": name}
        pages = self._client.pages("mydata_dataset_file/", _parser(dataset), query)
        rows = [row for page in pages for row in page]
        if not rows:
            self._client.prove()
        return [row for row in rows if (row.dataset, row.name) == (dataset, name)]

    def read_datafile(self, record: Datafile, take: Callable[[Iterable[bytes]], T]) -> T:
        return self._client.read(
            f"dataset_file/{record.id}/download/",
            answer_timeout(record.size),
            lambda pieces: take(_whole(record, pieces)),
        )

    def register(self, records: Sequence[Registration]) -> None:
        """Send the request once; only status 202 means that it was carried out.

        Raises `RejectedError` if it was not, `TransientError` if that is unknown, and its subclass
        `UnansweredError` if the server may still be processing it.
        """
        client, uri = self._client, self._client.wire.uri
        documents = [registration_document(record, uri) for record in records]
        body = orjson.dumps({"objects": documents})
        if not body.isascii():  # a gateway could misread it in another encoding
            body = json.dumps({"objects": documents}).encode()
        headers = {"Content-Type": "application/json"}
        request = HttpRequest("PATCH", "mydata_dataset_file/", body=body, headers=headers)
        try:
            reply = client.submit(request)
            stored_nothing = reply.status == 500 and is_from_the_application(reply)
            if not stored_nothing:
                client.check(reply, (202,))
        except TransientError as error:
            message = f"It is not known whether the server stored the records. {error.message}"
            if not isinstance(error, UnansweredError):
                raise TransientError(message, hint=error.hint, code="register.unknown") from error
            raise UnansweredError(
                message,
                hint=error.hint,
                code="register.unknown",
                loss=error.loss,
                sent_at=error.sent_at,
            ) from error
        except RejectedError as error:
            if error.problem_code in ("server.forbidden", "server.gateway"):
                raise
            raise RejectedError(error.message, hint=error.hint, code="register.refused") from error
        if stored_nothing:
            raise RejectedError(
                f"The server did not accept the records: {client.excerpt(reply)}",
                hint="A record with this name may already exist, or the server cannot store the "
                "name.",
                code="register.refused",
            )

    def find_end(self, begun: float, lost: UnansweredError) -> float:
        return self._client.find_end(begun, lost)

    def request_verification(self, datafile: DatafileId) -> None:
        self._client.change("GET", f"dataset_file/{datafile}/verify/", None)

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def _rows(self, path: str, parse: Callable[[Any], T], query: Query) -> list[T]:
        """Return the first page of a lookup that has few results."""
        return [row for _, row in self._client.fetch(path, page_parser(parse), query).rows]

    def _proved(self, found: T | None) -> T | None:
        if found is None:
            self._client.prove()
        return found

    def _look_up_user(self, username: str) -> User | None:
        users = self._rows("user/", parse_user, {"username": username})
        return _first(users, lambda user: user.username == username)

    def _look_up_experiment(self, draft: ExperimentDraft) -> Experiment | None:
        query = {"title": draft.title, "folder_structure": draft.layout}
        if draft.user_folder:
            query["user_folder_name"] = draft.user_folder
        if draft.group_folder:
            query["group_folder_name"] = draft.group_folder
        experiments = self._rows("mydata_experiment/", parse_experiment, query)
        found = _first(experiments, lambda experiment: experiment.title == draft.title)
        # The server returns one of the matches, and not always the same one.
        return self._choose_experiment(draft, found) if found and found.empty else found

    def _choose_experiment(self, draft: ExperimentDraft, known: Experiment) -> Experiment:
        """Return which of the experiments that match this draft is to be used.

        That is the oldest one with datasets, else the oldest one.
        """
        pages = self._client.pages("experiment/", parse_experiment, {"title": draft.title})
        try:
            found = [it for page in pages for it in page if is_of_draft(it, draft)]
        except RejectedError:  # the server does not support this query
            found = []
        return min([known, *found], key=lambda it: (it.empty, it.id))

    def _look_up_datasets(
        self, experiment: Experiment, instrument: InstrumentRecord, query: Query
    ) -> list[Dataset]:
        """Return datasets, the oldest first; those without files come last."""
        query = {**query, "experiments__id": experiment.id, "instrument__id": instrument.id}
        pages = self._client.pages("dataset/", parse_dataset, query)
        return sorted(
            (it for page in pages for it in page),
            key=lambda dataset: (not dataset.files, dataset.id),
        )


def _parser(dataset: DatasetId) -> Callable[[Any], Datafile]:
    """Return the parser of a record that was requested as one of this dataset."""

    def parse(row: Any) -> Datafile:
        record = parse_datafile(row)
        return record._replace(dataset=dataset) if record.fault and not record.dataset else record

    return parse


def _whole(record: Datafile, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the bytes of a record; raises `OtherBytesError` at the end if the checksum differs."""
    size, checksum = 0, hashlib.md5(usedforsecurity=False)
    for piece in pieces:
        size += len(piece)
        checksum.update(piece)
        yield piece
    if (size, checksum.hexdigest()) != (record.size, record.checksum):
        raise OtherBytesError(
            f"The server returned other bytes for {record.name} than it has verified.",
            hint="If this persists, ask the facility's administrator to check the storage.",
        )


def _first(values: Sequence[T], fits: Callable[[T], bool]) -> T | None:
    return next((value for value in values if fits(value)), None)
