"""Conversion of the server's JSON to and from values; unexpected data raises `ShapeError`.

Unknown fields are ignored, for compatibility with newer servers.
"""

import mimetypes
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, Generic, NamedTuple, TypeVar

from mydata_like.catalogues.mytardis.server_api import ExperimentDraft
from mydata_like.core.errors import RejectedError
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
    Registration,
    Replica,
    User,
)

T = TypeVar("T")
_LARGEST: Final = 2**63  # beyond this, neither the server's database nor ours can store it


class ShapeError(ValueError):
    """An answer does not have the expected structure."""


class ListingPage(NamedTuple, Generic[T]):
    """One page of a listing: ids and rows; `total` counts the rows of all pages."""

    rows: list[tuple[int, T]]
    total: int


class Account(NamedTuple):
    """Our account on the server, and the names of the groups with its permissions, by id."""

    user: User
    groups: Mapping[int, str]


def page_parser(parse_row: Callable[[Any], T]) -> Callable[[Any], ListingPage[T]]:
    """Return a function that parses a page of rows with `parse_row`."""

    def parse_page(answer: Any) -> ListingPage[T]:
        rows = expect(answer, "objects", list)
        total = expect(expect(answer, "meta", dict), "total_count", int)
        return ListingPage([(expect(row, "id", int), parse_row(row)) for row in rows], total)

    return parse_page


def parse_set(answer: Any) -> list[Datafile]:
    """Return the records of an answer to a request for several ids."""
    return [parse_datafile(row) for row in expect(answer, "objects", list)]


def expect(record: Any, name: str, kind: type[T]) -> T:
    """Return a field of a JSON record, which must be of this type."""
    if type(record) is not dict:
        raise ShapeError(f"a {type(record).__name__} instead of a record")
    value = record.get(name)
    # A bool is an int in Python, but not in JSON.
    if type(value) is not kind:
        raise ShapeError(f"{name} is {type(value).__name__} instead of {kind.__name__}")
    if kind is int and not 0 <= value < _LARGEST:  # type: ignore[operator]
        raise ShapeError(f"{name} is out of range")
    return value


def _text(record: Any, name: str) -> str:
    """Return a text that may be missing or null."""
    value = record.get(name) if type(record) is dict else None
    return value if isinstance(value, str) else ""


def parse_resources(answer: Any) -> frozenset[str]:
    """Return the names of an API's resources."""
    if type(answer) is not dict or not all(type(it) is dict for it in answer.values()):
        raise ShapeError("not a list of API resources")
    if "dataset" not in answer:
        raise ShapeError("an API without datasets")
    return frozenset(answer)


def parse_user(row: Any) -> User:
    """Return an account; names and addresses of other users may be hidden from us."""
    names = (_text(row, "first_name"), _text(row, "last_name"))
    return User(
        expect(row, "id", int),
        expect(row, "username", str),
        " ".join(name.strip() for name in names if name.strip()),
        _text(row, "email"),
        " ".join(names),
    )


def parse_account(row: Any) -> Account:
    """Return our own account."""
    groups = row.get("groups") if type(row) is dict else None
    known = groups if type(groups) is list else []
    found = map(parse_group, known)
    return Account(parse_user(row), {group.id: group.name for group in found})


def parse_group(row: Any) -> Group:
    """Return a group of users."""
    return Group(expect(row, "id", int), expect(row, "name", str))


def parse_facility(row: Any) -> Facility:
    """Return a facility with the group of its managers."""
    manager_group = parse_group(expect(row, "manager_group", dict))
    return Facility(expect(row, "id", int), expect(row, "name", str), manager_group)


def parse_instrument(row: Any) -> InstrumentRecord:
    """Return an instrument."""
    return InstrumentRecord(expect(row, "id", int), expect(row, "name", str))


def parse_experiment(row: Any) -> Experiment:
    """Return an experiment; older servers do not count its datasets."""
    number, title = ExperimentId(expect(row, "id", int)), expect(row, "title", str)
    marks, sets = set(), row.get("parameter_sets")
    for parameters in sets if type(sets) is list else ():
        for parameter in expect(parameters, "parameters", list):
            text = parameter.get("string_value") if type(parameter) is dict else None
            if type(text) is str:
                marks.add(text)
    return Experiment(number, title, row.get("dataset_count") == 0, frozenset(marks))


def parse_dataset(row: Any) -> Dataset:
    """Return a dataset; older servers do not count its files."""
    files = row.get("dataset_datafile_count") if type(row) is dict else None
    return Dataset(
        DatasetId(expect(row, "id", int)),
        expect(row, "description", str),
        files if type(files) is int else 0,
    )


def parse_stats(answer: Any) -> DatasetStats | None:
    """Return a dataset's statistics, or None if the server failed to compute them."""
    if not expect(answer, "success", bool):
        return None
    files = expect(answer, "files", dict)
    return DatasetStats(expect(files, "total", int), expect(files, "verified", int))


def parse_datafile(row: Any) -> Datafile:
    """Return one record; if it is invalid but has an id, it concerns no other record."""
    number = expect(row, "id", int)
    try:
        return _parse_datafile(row)
    except ShapeError as error:
        # What can be read of it: at most its place in its dataset.
        directory, name = row.get("directory"), _text(row, "filename")
        if not isinstance(directory, str | None):
            directory, name = None, ""
        try:
            dataset = parse_uri(row.get("dataset"))
        except ShapeError:
            dataset = 0
        fault = f"datafile {number}: {error}"
        place = DatafileId(number), DatasetId(dataset), directory, name
        return Datafile(*place, 0, "", "", (), fault)


def _parse_datafile(row: Any) -> Datafile:
    """Return one record; sizes are texts on older servers."""
    try:
        directory, checksum = row["directory"], row["md5sum"]
        # A replica without a path is still being written, or never was.
        rows = row["replicas"]
        placed = [replica for replica in rows if replica["uri"] is not None]
        replicas = tuple([_parse_replica(replica) for replica in placed])
        size, dataset = row["size"], row["dataset"]
    except (TypeError, KeyError) as error:
        raise ShapeError(f"not a datafile: {error!r}") from error
    if rows and not placed:
        raise ShapeError("its replica has no path")
    if not (isinstance(directory, str | None) and isinstance(checksum, str | None)):
        raise ShapeError("a datafile's directory or checksum is not text")
    return Datafile(
        DatafileId(expect(row, "id", int)),
        DatasetId(parse_uri(dataset)),
        directory,
        expect(row, "filename", str),
        _parse_number(size) if type(size) is str else expect(row, "size", int),
        checksum or "",
        _text(row, "modification_time"),
        replicas,
    )


def _parse_replica(row: Any) -> Replica:
    uri, location, verified = row["uri"], row["location"], row["verified"]
    if type(uri) is not str or type(location) is not str or type(verified) is not bool:
        raise ShapeError("not a replica")
    looked = row.get("last_verified_time")
    return Replica(uri, location, verified, looked if type(looked) is str and looked else None)


def _parse_number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise ShapeError("a text that is not a number")
    return int(text)


def parse_uri(uri: Any) -> int:
    """Return the number at the end of a resource's URI; the rest is ignored."""
    return _parse_uri(uri if type(uri) is str else "")


@lru_cache(maxsize=256)  # all records of a page name the same dataset
def _parse_uri(uri: str) -> int:
    return _parse_number(uri.rstrip("/").rpartition("/")[2])


_SCHEMA: Final = "http://mytardis.org/schemas/mydata/defaultexperiment"
_CHECKSUM: Final = re.compile(r"[0-9a-f]{32}")
_OPAQUE: Final = "application/octet-stream"
_NOWHERE: Final = frozenset({"", ".", ".."})

Document = dict[str, object]


def check_text(what: str, text: str, limit: int) -> None:
    """Raise `RejectedError` for a text that the server cannot store unchanged."""
    if not text.strip():
        raise _unfit(f"{what} is empty.")
    if len(text) > limit:
        raise _unfit(f"{what} has {len(text)} characters; the server allows {limit}.")
    _check_characters(what, text)


def _check_characters(what: str, text: str) -> None:
    if "\0" in text:
        raise _unfit(f"{what} contains a null character.")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise _unfit(f"{what} contains bytes that are not text.")


def _unfit(message: str) -> RejectedError:
    return RejectedError(
        message, hint="Rename it on the disk or in the settings.", code="name.unfit"
    )


def experiment_document(draft: ExperimentDraft) -> Document:
    """Return an experiment with the parameters by which it is found again."""
    parameters = [("uploader", draft.uploader), ("user_folder_name", draft.user_folder)]
    if draft.group_folder:
        parameters.append(("group_folder_name", draft.group_folder))
    for name, value in (*parameters, ("The description", draft.description)):
        _check_characters(name, value)
    values = [{"name": name, "value": value} for name, value in parameters]
    return {
        "title": draft.title,
        "description": draft.description,
        "immutable": False,
        "parameter_sets": [{"schema": _SCHEMA, "parameters": values}],
    }


def is_of_draft(experiment: Experiment, draft: ExperimentDraft) -> bool:
    """Return whether an experiment was created for the same owner's folder, by any uploader."""
    marks = {text.casefold() for text in experiment.marks}
    folders = filter(None, (draft.user_folder, draft.group_folder))
    return experiment.title == draft.title and marks.issuperset(map(str.casefold, folders))


def acl_document(experiment: ExperimentId, uri: str, holder: User | Group) -> Document:
    """Return the ACL entry that makes a user or a group an owner of an experiment."""
    return {
        "pluginId": "django_user" if isinstance(holder, User) else "django_group",
        "entityId": str(holder.id),
        "content_object": uri,
        "content_type": "experiment",
        "object_id": experiment,
        "aclOwnershipType": 1,
        "isOwner": True,
        "canRead": True,
        "canWrite": True,
        "canDelete": False,
        "effectiveDate": None,
        "expiryDate": None,
    }


def registration_document(record: Registration, uri: Callable[[str, int], str]) -> Document:
    """Return a record to create or a change of one; `uri` returns the URIs of records."""
    if not _CHECKSUM.fullmatch(record.checksum) or record.size < 0:
        raise _unfit(f"{record.name} has no valid checksum or size.")
    document: Document = {
        "md5sum": record.checksum,
        "size": record.size,
        "modification_time": record.modified,
    }
    if record.datafile is not None:
        document["resource_uri"] = uri("mydata_dataset_file", record.datafile)
    else:
        document |= datafile_document(record.directory, record.name)
        document["dataset"] = uri("dataset", record.dataset)
        document["created_time"] = record.created
    if record.uri is not None:
        _check_path(record.uri)
        replica = {"url": record.uri, "location": record.box, "protocol": "file"}
        document["replicas"] = [replica]
    return document


def datafile_document(directory: str, name: str) -> Document:
    """Return the directory, name and type of a datafile."""
    check_text("The file's name", name, 400)
    _check_path(f"{directory}/{name}" if directory else name)
    if len(directory) > 255:
        raise _unfit(f"The directory of {name} has more than the 255 characters the server allows.")
    _check_characters("The directory", directory)
    # The directory is always sent, even if empty: without it, the server does not notice
    # that it already has the file.
    return {"directory": directory, "filename": name, "mimetype": guess_type(name)}


def _check_path(path: str) -> None:
    if not _NOWHERE.isdisjoint(path.split("/")):
        raise _unfit(f"The path {path!r} points outside its dataset on the server.")
    _check_characters("The path", path)


def guess_type(name: str) -> str:
    """Return the MIME type guessed from a name, short enough for the server."""
    return _guess_type(name[-80:].partition(".")[2])


@lru_cache(1000)
def _guess_type(extensions: str) -> str:
    kind, encoding = mimetypes.guess_type("x." + extensions.replace(":", "_"))
    return _OPAQUE if kind is None or encoding or len(kind) > 80 else kind
