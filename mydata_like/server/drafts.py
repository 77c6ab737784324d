"""What the server is sent, as plain values for JSON, checked for what it cannot take.

The server answers a bare 500 to most mistakes, or worse, takes them; so they are found here.
"""

import mimetypes
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from mydata_like.core.errors import RejectedError
from mydata_like.core.model import Experiment, ExperimentId, Group, Registration, User
from mydata_like.core.ports import ExperimentDraft

_SCHEMA: Final = "http://mytardis.org/schemas/mydata/defaultexperiment"
_CHECKSUM: Final = re.compile(r"[0-9a-f]{32}")
_OPAQUE: Final = "application/octet-stream"
_NOWHERE: Final = frozenset({"", ".", ".."})

Document = dict[str, object]


def check_text(what: str, text: str, limit: int) -> None:
    """Raise `RejectedError` for a text that the server cannot keep as it is."""
    if not text.strip():
        raise _unfit(f"{what} is empty.")
    if len(text) > limit:
        raise _unfit(f"{what} has {len(text)} characters; the server takes {limit}.")
    _check_characters(what, text)


def _check_characters(what: str, text: str) -> None:
    if "\0" in text:
        raise _unfit(f"{what} contains a null character.")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise _unfit(f"{what} contains bytes that are no text.")


def _unfit(message: str) -> RejectedError:
    return RejectedError(
        message, hint="Rename it on the disk or in the settings.", code="name.unfit"
    )


def experiment_document(draft: ExperimentDraft) -> Document:
    """Return an experiment with what it is found by again."""
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
    """Return whether an experiment was made for the same owner's folder, by whichever uploader."""
    marks = {text.casefold() for text in experiment.marks}
    folders = filter(None, (draft.user_folder, draft.group_folder))
    return experiment.title == draft.title and marks.issuperset(map(str.casefold, folders))


def acl_document(experiment: ExperimentId, uri: str, holder: User | Group) -> Document:
    """Return the entry that makes a user or a group an owner of an experiment."""
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
    """Return a record to be made, or what changes in one; `uri` names the server's records."""
    if not _CHECKSUM.fullmatch(record.checksum) or record.size < 0:
        raise _unfit(f"{record.name} has no sound checksum or size.")
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
    """Return where a datafile stands and what it seems to be."""
    check_text("The file's name", name, 400)
    _check_path(f"{directory}/{name}" if directory else name)
    if len(directory) > 255:
        raise _unfit(f"The directory of {name} has more than the 255 characters the server takes.")
    _check_characters("The directory", directory)
    # The directory is always told, if only as an empty text: without it the server does not
    # notice that it has the file already.
    return {"directory": directory, "filename": name, "mimetype": guess_type(name)}


def _check_path(path: str) -> None:
    if not _NOWHERE.isdisjoint(path.split("/")):
        raise _unfit(f"The path {path!r} leads elsewhere on the server.")
    _check_characters("The path", path)


def guess_type(name: str) -> str:
    """Return the MIME type that a name suggests, short enough for the server."""
    return _guess_type(name[-80:].partition(".")[2])


@lru_cache(1000)
def _guess_type(extensions: str) -> str:
    kind, encoding = mimetypes.guess_type("x." + extensions.replace(":", "_"))
    return _OPAQUE if kind is None or encoding or len(kind) > 80 else kind
