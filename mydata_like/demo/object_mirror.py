"""Storage boxes in object storage: copies of their objects, which the server reads as files."""

from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from shutil import copyfileobj
from threading import Lock
from typing import Any

from mydata_like.demo.database import Database, Row
from mydata_like.demo.verifier import replica_path

_ROWS = """
    SELECT box, uri, location FROM replica JOIN box ON box.id = replica.box
    WHERE box IN (SELECT box FROM box_option)
"""


def add_box(store: Database, name: str, folder: Path, options: Mapping[str, str]) -> int:
    """Add a storage box with the options of django-storages; its copies are below a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with store.transaction():
        number = store.insert("box", name=name, location=str(folder))
        for key, value in options.items():
            store.insert("box_option", box=number, key=key, value=value)
    return number


class ObjectMirror:
    """Copies the objects of replicas to where the server looks for their bytes."""

    def __init__(self, store: Database) -> None:
        self._store = store
        self._lock = Lock()
        self._clients: dict[int, Any] = {}

    def refresh_all(self) -> None:
        """Copy the objects of all replicas anew."""
        self.refresh(self._store.rows(_ROWS))

    def refresh(self, replicas: Iterable[Row]) -> None:
        """Copy the objects of these replicas anew; remove the copies of objects that are gone."""
        with self._lock:
            boxes: dict[int, dict[str, str]] = {}
            for row in self._store.rows("SELECT * FROM box_option"):
                boxes.setdefault(row["box"], {})[row["key"]] = row["value"]
            for row in replicas:
                if row["box"] in boxes:
                    path = replica_path(row["location"], row["uri"])
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.unlink(missing_ok=True)
                    self._fetch(row["box"], boxes[row["box"]], row["uri"], path)

    def _fetch(self, box: int, options: Mapping[str, str], uri: str, path: Path) -> None:
        # Imported here: only such boxes need the optional package.
        import botocore.session
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError, ClientError

        if box not in self._clients:
            self._clients[box] = botocore.session.Session().create_client(
                "s3",
                region_name=options.get("region_name", "us-east-1"),
                endpoint_url=options["endpoint_url"],
                aws_access_key_id=options["access_key"],
                aws_secret_access_key=options["secret_key"],
                config=Config(s3={"addressing_style": "path"}, connect_timeout=5, proxies={}),
            )
        key = "/".join(filter(None, (options.get("location", "").strip("/"), uri)))
        try:
            found = self._clients[box].get_object(Bucket=options["bucket_name"], Key=key)
            with closing(found["Body"]) as body, path.open("wb") as copy:
                copyfileobj(body, copy)
        except (BotoCoreError, ClientError):
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            client.close()
