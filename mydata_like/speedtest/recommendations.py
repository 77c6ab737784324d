"""What a speed test tries and concludes: changes of settings, and the slowest parts."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from mydata_like.core.formatting import format_size
from mydata_like.settings.transfer_sections import Transfer
from mydata_like.speedtest.results import (
    COMPRESSED,
    SpeedTestResult,
    StageResult,
    Unit,
    Workload,
)
from mydata_like.transfer.sessions import count_cpus

_CIPHERS: Final = 2  # that are tried besides the current one
_SHRINKS: Final = 0.8  # the compressed size from which compression is not tried
_BATCHES: Final = ("batch_below", "batch_bytes", "batch_files")

NAMES: Final[Mapping[StageResult, str]] = {
    StageResult.SOURCE: "the disk of this computer",
    StageResult.HASH: "computing checksums on this computer",
    StageResult.NETWORK: "the connection to the staging host",
    StageResult.SERVER_DISK: "the disk of the server",
    StageResult.FOLDER: "the mounted folder",
    StageResult.API: "the server's API in earlier runs",
}


class Candidate(NamedTuple):
    """A change of settings that may make a workload faster; see `SettingsComparison`."""

    code: str
    text: str
    workload: Workload
    changes: Mapping[str, object]

    def apply(self, settings: Transfer) -> Transfer:
        """Return settings with this change."""
        values = {key.removeprefix("transfer."): value for key, value in self.changes.items()}
        return Transfer(**settings.values() | values)


def list_candidates(
    findings: SpeedTestResult, settings: Transfer, *, zstd: bool
) -> Iterator[Candidate]:
    """Yield the changes to try, those that can make the largest difference first.

    `zstd` is whether the host can unpack it.
    """
    usual = Transfer()
    batches: dict[str, object] = {
        f"transfer.{key}": getattr(usual, key)
        for key in _BATCHES
        if getattr(settings, key) < getattr(usual, key)
    }
    if batches:
        text = "Send more tiny files together: use the default batch sizes."
        yield Candidate("batches", text, Workload.TINY, batches)
    if settings.channels not in (0, count_channels(Transfer())):
        for workload in Workload:
            yield Candidate(
                "channels",
                "Choose the number of channels automatically.",
                workload,
                {"transfer.channels": 0},
            )
    ratio = findings.value(StageResult.SOURCE, COMPRESSED) or 1.0
    if settings.compression == "never" and zstd and ratio < _SHRINKS:
        text = f"Compress during transfer: your data shrinks to {ratio:.0%}."
        yield Candidate("compression", text, Workload.LARGE, {"transfer.compression": "auto"})
    for cipher in _choose_ciphers(findings, settings) if findings.cipher else ():
        # The others stay in the list, because another host may need them.
        order = [cipher, *(one for one in settings.ciphers if one != cipher)]
        yield Candidate(
            "cipher", f"Offer {cipher} first.", Workload.LARGE, {"transfer.ciphers": order}
        )


def count_channels(settings: Transfer) -> int:
    """Return the number of channels to send over.

    If it is automatic, it is two, as at the start of a run, or the number of cores if larger.
    """
    return settings.channels or max(2, count_cpus())


def _choose_ciphers(findings: SpeedTestResult, settings: Transfer) -> list[str]:
    """Return the ciphers to try: the fastest ones here, besides the negotiated one."""
    alone = {one.what: one.value for one in findings.measured if one.stage is StageResult.CIPHER}
    others = [cipher for cipher in settings.ciphers if cipher != findings.cipher]
    return sorted(others, key=lambda cipher: -alone.get(cipher, 0.0))[:_CIPHERS]


def as_verdict(findings: SpeedTestResult) -> dict[str, object]:
    """Return the slowest part for each workload, and what made it faster, for JSON."""
    workloads = []
    for workload in Workload:
        parts = findings.find_parts(workload)
        workloads.append(
            {
                "workload": workload,
                "unit": workload.unit,
                "together": findings.value(StageResult.CHANNELS, workload.together),
                "limit": next(iter(parts), None),
                "parts": parts,
            }
        )
    return {
        "sentence": " ".join(describe(findings)),
        "workloads": workloads,
        "advice": [one.as_record() for one in findings.compared if one.won],
    }


def describe(findings: SpeedTestResult) -> Iterator[str]:
    """Yield a sentence for each workload, and one on the comparisons."""
    for workload in Workload:
        together = findings.value(StageResult.CHANNELS, workload.together)
        parts = findings.find_parts(workload)
        sent = (
            f"{workload.title()} files were sent at {_rate(together, workload)}" if together else ""
        )
        slowest = [f"{NAMES[stage]} ({_rate(rate, workload)})" for stage, rate in parts.items()][:1]
        if sent and slowest:
            yield f"{sent}; the slowest part alone is {slowest[0]}."
        elif sent:
            yield f"{sent}."
        elif slowest:
            yield f"For {workload} files, the slowest part that was measured is {slowest[0]}."
    if findings.compared and not any(one.won for one in findings.compared):
        yield "No difference found: no other setting was faster twice."


def _rate(rate: float, workload: Workload) -> str:
    if workload.unit is Unit.BYTES:
        return f"{format_size(rate)}/s"
    return f"{rate:,.0f} files/s"
