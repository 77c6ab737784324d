"""A client for the embedded server: plain requests, and records in the format of clients."""

import hashlib
from pathlib import Path

import requests

from mydata_like.demo.demo_server import EmbeddedServer

UUID = "6b49f74f-117e-45ba-be74-73a3ae100cc0"
FINGERPRINT = "SHA256:c7/X3T5lrNY72MkfOZ5Q4Hrso3/Wn0uZOLt8B4STiFI"
HELLO = b"hello"
HTML = "text/html; charset=utf-8"
SORRY = {"error_message": "Sorry, this request could not be processed. Please try again later."}


class Api(requests.Session):
    """A session with a server as one of its users, or anonymous with None."""

    def __init__(self, server: EmbeddedServer, username: str | None = "demo") -> None:
        super().__init__()
        self.trust_env = False
        self.server = server
        if username is not None:
            key = server.key_of(username)
            self.headers["Authorization"] = f"ApiKey {username}:{key}"

    def request(self, method, path, *args, **options):
        options.setdefault("allow_redirects", False)
        options.setdefault("timeout", 20)
        return super().request(method, f"{self.server.url}/api/v1/{path}", *args, **options)

    def get(self, path, **options):
        return self.request("GET", path, **options)  # the inherited method follows redirects

    def prepare(self, *, approved: bool = True) -> None:
        """Create an instrument, an uploader, an experiment and a dataset, each with id 1."""
        self.post("instrument/", json={"facility": "/api/v1/facility/1/", "name": "Scope"})
        self.post("mydata_uploader/", json={"uuid": UUID, "name": "Scope"})
        self.post("mydata_uploaderregistrationrequest/", json=registration())
        if approved:
            self.server.approve(UUID)
        self.post("mydata_experiment/", json=experiment("Exp", "alice"))
        assert self.make_dataset("My Scan") == 1

    def make_dataset(self, description: str) -> int:
        body = {
            "instrument": "/api/v1/instrument/1/",
            "description": description,
            "experiments": ["/api/v1/experiment/1/"],
            "immutable": False,
        }
        return self.post("dataset/", json=body).json()["id"]

    def put_file(self, uri: str, content: bytes = HELLO) -> Path:
        """Write bytes into the staging area, as an upload does."""
        path = self.server.box_location / uri
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def datafile(self, number: int) -> dict:
        return self.get(f"mydata_dataset_file/{number}/").json()

    def names(self, query: str = "dataset__id=1&limit=0") -> list[str]:
        listed = self.get(f"mydata_dataset_file/?format=json&{query}").json()["objects"]
        return [entry["filename"] for entry in listed]


def is_bare(reply: requests.Response, status: int) -> bool:
    """Return whether a reply has only a status and an empty body."""
    return (reply.status_code, reply.content, reply.headers["Content-Type"]) == (status, b"", HTML)


def registration(fingerprint: str = FINGERPRINT) -> dict:
    return {
        "uploader": "/api/v1/mydata_uploader/1/",
        "name": "Scope",
        "requester_name": "Joe",
        "requester_email": "joe@example.com",
        "requester_public_key": "ssh-ed25519 AAAA MyData Key",
        "requester_key_fingerprint": fingerprint,
    }


def experiment(title: str, owner: str, **others: str) -> dict:
    parameters = {"uploader": UUID, "user_folder_name": owner, **others}
    return {
        "title": title,
        "description": "d",
        "immutable": False,
        "parameter_sets": [
            {
                "schema": "http://mytardis.org/schemas/mydata/defaultexperiment",
                "parameters": [
                    {"name": name, "value": value} for name, value in parameters.items()
                ],
            }
        ],
    }


def record(filename: str = "a.txt", **changes: object) -> dict:
    """Return a datafile record; a change to `...` omits the field."""
    fields = {
        "dataset": "/api/v1/dataset/1/",
        "filename": filename,
        "directory": "",
        "md5sum": hashlib.md5(HELLO).hexdigest(),
        "size": len(HELLO),
        "mimetype": "text/plain",
        "created_time": "2024-05-01T10:00:00",
        "modification_time": "2024-05-01T10:00:01.250000",
        "uploader_uuid": UUID,
        "requester_key_fingerprint": FINGERPRINT,
        **changes,
    }
    return {name: value for name, value in fields.items() if value is not ...}


def staged(filename: str, uri: str | None = None, box: str = "staging", **changes: object) -> dict:
    """Return a record of a file whose bytes are already in the staging area."""
    replica = {"url": uri or f"own/{filename}", "location": box, "protocol": "file"}
    return record(filename, replicas=[replica], **changes)
