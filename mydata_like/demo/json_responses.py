"""JSON responses in the form of MyTardis."""

import json
from collections.abc import Iterable, Mapping

from flask import Response

SORRY = {"error_message": "Sorry, this request could not be processed. Please try again later."}


class Refusal(Exception):  # noqa: N818 - it is an answer, and a usual one
    """The request is answered with this status; `payload` is its JSON, or None for no body."""

    def __init__(self, status: int, payload: object = None) -> None:
        super().__init__(status)
        self.status = status
        self.payload = payload


def failed() -> Refusal:
    """Return the bare 500 that MyTardis gives for nearly everything that is invalid."""
    return Refusal(500, SORRY)


def denied() -> Refusal:
    """Return the empty 401 of a missing right (not only of a wrong key)."""
    return Refusal(401)


def invalid(message: str) -> Refusal:
    """Return the 400 of the few mistakes that are named."""
    return Refusal(400, {"error": message})


JSON = "application/json"


def answer_json(payload: object, status: int = 200, *, location: str = "") -> Response:
    """Answer with JSON; `location` is the path of what was created."""
    text = json.dumps(payload, ensure_ascii=False)
    response = Response(text, status, content_type="application/json")
    if location:
        response.headers["Location"] = location
    return response


def answer_objects(others: Mapping[str, object], objects: Iterable[str]) -> Response:
    """Answer with records that are JSON already, behind other fields."""
    text = json.dumps({**others, "objects": []}, ensure_ascii=False)
    return answer_text(f"{text[:-2]}{', '.join(objects)}]}}", kind=JSON)


def answer_text(
    text: str = "", status: int = 200, *, location: str = "", kind: str | None = None
) -> Response:
    """Answer with a text that calls itself HTML, which is how MyTardis sends paths and nothing."""
    response = Response(text, status, content_type=kind)
    if location:
        response.headers["Location"] = location
    return response


def answer_refusal(refusal: Refusal) -> Response:
    """Answer with what a `Refusal` says."""
    if refusal.payload is None:
        return answer_text(status=refusal.status)
    return answer_json(refusal.payload, refusal.status)
