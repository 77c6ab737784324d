"""A separate program that sends the files of a plan with the transport alone, without a server.

    python -m benchmarks.sending PLAN.json

It prints one JSON object: the seconds from opening the first channel to the last checked file, the
seconds until all channels were open, and the number of files that were checked on the host.
"""

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from benchmarks.hog import hog

BOX = "benchmark"


def main(plan: dict[str, Any]) -> dict[str, Any]:
    """Execute a plan and return the result."""
    transport = _open_transport(plan)
    payloads: SimpleQueue[Any] = SimpleQueue()
    files = 0
    for payload in _payloads(plan):
        payloads.put(payload)
        files += len(payload.members)
    with hog(plan["hog"]), ThreadPoolExecutor(plan["channels"]) as threads:
        began = time.perf_counter()
        # As in the engine, each thread opens its channel and sends as soon as it is open.
        futures = [threads.submit(_work, transport, payloads) for _ in range(plan["channels"])]
        worked = [future.result() for future in futures]
        ended = time.perf_counter()
    transport.close()
    results = [result for _, sent in worked for result in sent]
    problems = [str(result.problem) for result in results if not hasattr(result, "checksum")]
    return {
        "seconds": ended - began,
        "connecting": max(opened for opened, _ in worked) - began,
        "proven": sum(hasattr(result, "checksum") for result in results),
        "files": files,
        "problem": problems[0] if problems else "",
    }


def _open_transport(plan: dict[str, Any]) -> Any:
    from mydata_like.core.model import StagingArea
    from mydata_like.settings.schema import Transfer
    from mydata_like.transfer.destination import StagingDestination
    from mydata_like.transfer.folder.folder_session import FolderDestination
    from mydata_like.transfer.pool import StagingTransport
    from mydata_like.transfer.ssh.endpoints import build_hosts

    area = StagingArea(
        box=BOX,
        location=plan["location"],
        username=plan["username"],
        hosts=(plan["host"],),
        port=plan["port"],
    )
    settings = Transfer(channels=plan["channels"], ciphers=(plan["cipher"],), **plan["settings"])

    def build(area: StagingArea) -> Sequence[StagingDestination]:
        if settings.folder is not None:
            return [FolderDestination(os.fsencode(settings.folder), area.box, area.location)]
        files = Path(plan["key_file"]), Path(plan["known_hosts"])
        return build_hosts(area, settings, key_file=files[0], known_hosts=files[1])

    return StagingTransport(area, settings, build=build, emit=lambda event: None)


def _work(transport: Any, payloads: "SimpleQueue[Any]") -> tuple[float, list[Any]]:
    """Send over a separate channel; return the time when it was open, and all results."""
    results: list[Any] = []
    channel = transport.open_channel()
    opened = time.perf_counter()
    while True:
        try:
            payload = payloads.get_nowait()
        except Empty:
            return opened, results
        results += channel.send(payload, lambda *_: None)


def _payloads(plan: dict[str, Any]) -> Iterator[Any]:
    """Group the files as the engine does: tiny ones in batches, others alone."""
    from mydata_like.core.model import Dataset, DatasetId, FileRecord, Payload
    from mydata_like.settings.schema import Transfer

    limits, dataset = Transfer(**plan["settings"]), Dataset(DatasetId(1), "benchmark")
    numbers = count(1)
    batch: list[Any] = []
    size = 0
    for path in Path(plan["list"]).read_text().splitlines():
        wanted = FileRecord(_look(plan["root"], path), dataset, path)
        if wanted.file.size >= limits.batch_below:
            yield Payload(next(numbers), (wanted,), batched=False)
            continue
        if batch and (
            len(batch) >= limits.batch_limit or size + wanted.file.size > limits.batch_bytes
        ):
            yield Payload(next(numbers), tuple(batch), batched=True)
            batch, size = [], 0
        batch.append(wanted)
        size += wanted.file.size
    if batch:
        yield Payload(next(numbers), tuple(batch), batched=len(batch) > 1)


def _look(root: str, path: str) -> Any:
    from mydata_like.core.local_files import LocalFile

    file = Path(root, path)
    found = file.stat()
    folder, _, name = path.rpartition("/")
    return LocalFile(
        str(file).encode(),
        path.encode(),
        folder.encode(),
        name.encode(),
        found.st_size,
        found.st_mtime_ns,
        found.st_dev,
        found.st_ino,
    )


if __name__ == "__main__":
    json.dump(main(json.loads(Path(sys.argv[1]).read_text())), sys.stdout)
