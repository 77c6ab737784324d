"""A program of its own: carries the files of a plan with the transport alone, no server.

    python -m benchmarks.sending PLAN.json

It prints one JSON object: the seconds from opening the first channel to the last proof, those
until all channels were open, and how many files are proven.
"""

# The workers import this module again when they are spawned, as they do the program's own
# entry point, so it knows nothing but the standard library until it is asked to work.
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

BATCH_FILES, BATCH_BYTES = 1000, 16 * 2**20


def main(plan: dict[str, Any]) -> dict[str, Any]:
    """Do what the plan says and return what it took."""
    transport = _open_transport(plan)
    payloads: SimpleQueue[Any] = SimpleQueue()
    count = 0
    for payload in _payloads(plan):
        payloads.put(payload)
        count += len(payload.members)
    with ThreadPoolExecutor(plan["channels"]) as threads:
        began = time.perf_counter()
        # As the engine's senders do, each opens its channel and sends as soon as it is open.
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
        "files": count,
        "problem": problems[0] if problems else "",
    }


def _open_transport(plan: dict[str, Any]) -> Any:
    from mydata_like.core.model import StagingArea
    from mydata_like.settings.schema import Transfer
    from mydata_like.transfer.pool import SshTransport

    area = StagingArea(
        box="benchmark",
        location=plan["location"],
        username=plan["username"],
        hosts=(plan["host"],),
        port=plan["port"],
    )
    return SshTransport(
        area,
        Transfer(channels=plan["channels"], ssh=plan["stack"], ciphers=(plan["cipher"],)),
        key_file=Path(plan["key_file"]),
        known_hosts=Path(plan["known_hosts"]),
        emit=lambda event: None,
    )


def _work(transport: Any, payloads: "SimpleQueue[Any]") -> tuple[float, list[Any]]:
    """Send with a channel of one's own; return when it was open, and every member's fate."""
    results: list[Any] = []
    channel = transport.open_channel()
    opened = time.perf_counter()
    while True:
        try:
            payload = payloads.get_nowait()
        except Empty:
            return opened, results
        results += channel.send(payload, lambda moved: None)


def _payloads(plan: dict[str, Any]) -> list[Any]:
    """Group the files as the engine does: in batches where they are tiny, else alone."""
    from mydata_like.core.model import Dataset, DatasetId, Payload, Wanted

    dataset = Dataset(DatasetId(1), "benchmark")
    wanted = [
        Wanted(_look(plan["root"], path), dataset, path)
        for path in Path(plan["list"]).read_text().splitlines()
    ]
    if not plan["batched"]:
        return [Payload(number, (one,), batched=False) for number, one in enumerate(wanted)]
    size = max((one.file.size for one in wanted), default=1) or 1
    step = max(1, min(BATCH_FILES, BATCH_BYTES // size))
    return [
        Payload(place, tuple(wanted[place : place + step]), batched=True)
        for place in range(0, len(wanted), step)
    ]


def _look(root: str, path: str) -> Any:
    from mydata_like.core.model import LocalFile

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
