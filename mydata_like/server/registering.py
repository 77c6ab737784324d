"""Registers many datafiles in one request that happens wholly or not at all."""

import json
from collections.abc import Sequence
from typing import NoReturn

import orjson

from mydata_like.core.errors import RejectedError, TransientError, UnansweredError
from mydata_like.server.client import Client
from mydata_like.server.drafts import Document
from mydata_like.server.replies import decode_json
from mydata_like.server.wire import Reply, Request


def send_registration(client: Client, documents: Sequence[Document]) -> None:
    """Send the request once; only a 202 means that it happened.

    Raises `RejectedError` where it did not, `TransientError` where nobody knows, and of these
    `UnansweredError` where it may still be at work.
    """
    body, headers = _encode(documents), {"Content-Type": "application/json"}
    request = Request("PATCH", "mydata_dataset_file/", body=body, headers=headers)
    try:
        reply = client.submit(request)
    except TransientError as error:
        raise _unknown(error) from error
    if reply.status == 500 and is_from_the_application(reply):
        _refuse(client, reply)
    try:
        client.check(reply, (202,))
    except TransientError as error:
        raise _unknown(error) from error
    except RejectedError as error:
        if error.problem_code == "server.forbidden":
            raise
        raise RejectedError(error.message, hint=error.hint, code="register.refused") from error


def _encode(documents: Sequence[Document]) -> bytes:
    """Return the JSON in plain ASCII, which no gateway on the way can read in another encoding."""
    body = orjson.dumps({"objects": documents})
    return body if body.isascii() else json.dumps({"objects": documents}).encode()


def is_from_the_application(reply: Reply) -> bool:
    """Tell MyTardis's own 500, after which nothing is stored, from one of a proxy before it."""
    try:
        answer = decode_json(reply.body)
    except ValueError:
        return False
    return isinstance(answer, dict) and "error_message" in answer


def _refuse(client: Client, reply: Reply) -> NoReturn:
    raise RejectedError(
        f"The server did not take the records: {client.excerpt(reply)}",
        hint="A record of that name may exist already, or the server cannot keep the name.",
        code="register.refused",
    )


def _unknown(error: TransientError) -> TransientError:
    kind = UnansweredError if isinstance(error, UnansweredError) else TransientError
    return kind(
        f"It is not known whether the server took the records. {error.message}",
        code="register.unknown",
        retry_after=error.retry_after,
    )
