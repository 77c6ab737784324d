"""Recommendations: settings to change, or changes on the server."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from mydata_like.core.formatting import format_size
from mydata_like.settings.transfer_sections import Transfer
from mydata_like.speedtest.prediction import (
    Prediction,
    TransferMode,
    Workload,
    encryption,
    inverse,
    is_short_of_processors,
    predict,
)
from mydata_like.speedtest.results import (
    COMPRESSED,
    LARGE_FILES,
    TINY_FILES,
    SpeedTestResult,
    StageResult,
    carried,
    in_usual_batches,
    local,
)

_WORTH: Final = 1.05  # the least speed-up for which a change is recommended
_CLEARLY: Final = 1.15  # the speed-up for which a run adds channels
_NEARLY: Final = 1.25  # processor times within this factor count as the same
_SHRINKS: Final = 0.8  # the compressed size from which compression is not recommended
_FULL: Final = 0.9  # the share of its capacity from which the network is full

_BATCHES: Final = ("batch_below", "batch_bytes", "batch_files")

NAMES: Final[Mapping[StageResult, str]] = {
    StageResult.SOURCE: "the disk of this computer",
    StageResult.HASH: "computing checksums on this computer",
    StageResult.CIPHER: "encryption on this computer",
    StageResult.NETWORK: "the network",
    StageResult.CHANNELS: "the number of channels over this distance",
    StageResult.SERVER_CPU: "the processors of the staging host",
    StageResult.SERVER_DISK: "the disk of the server",
    StageResult.FOLDER: "the mounted folder",
    StageResult.API: "the server's API",
}
_WORK: Final[Mapping[StageResult, str]] = {
    StageResult.HASH: "checksums",
    StageResult.CIPHER: "encryption",
    StageResult.SERVER_CPU: "receiving",
}
_RELIEF: Final[Mapping[StageResult, str]] = {
    StageResult.SOURCE: "A faster disk, or less use of it by other programs, would help.",
    StageResult.HASH: "More or faster processors in this computer would help.",
    StageResult.CIPHER: "More or faster processors in this computer would help.",
    StageResult.NETWORK: "A faster network between here and the staging host would help.",
    StageResult.CHANNELS: "A closer staging host, or one with larger SSH windows, would help.",
    StageResult.SERVER_CPU: "More cores for the staging host, or several hosts, would help.",
    StageResult.SERVER_DISK: "Faster storage behind the staging host would help.",
    StageResult.FOLDER: "A faster mount, or faster storage behind it, would help.",
    StageResult.API: "More workers for the server's web application would help.",
}


class Recommendation(NamedTuple):
    """One change, and the factor by which it would speed up a workload.

    `changes` are values of settings by key, as in a settings file. It is empty if no setting can
    make the change. `code` is stable: `cipher`, `channels`, `batches`, `compression`, `archives`,
    `relief`.
    """

    code: str
    text: str
    gain: float
    workload: Workload
    changes: Mapping[str, object] = {}

    def as_record(self) -> dict[str, object]:
        """Return this as plain values for JSON."""
        return {**self._asdict(), "changes": dict(self.changes)}


class Diagnosis(NamedTuple):
    """The conclusion of a speed test: one sentence, predicted speeds and recommendations."""

    sentence: str
    predictions: tuple[Prediction, ...]
    advice: tuple[Recommendation, ...]

    @property
    def changes(self) -> dict[str, object]:
        """All recommended changes of settings, by key."""
        return {key: value for each in self.advice for key, value in each.changes.items()}

    def as_record(self) -> dict[str, object]:
        """Return this as plain values for JSON."""
        return {
            "sentence": self.sentence,
            "workloads": [prediction.as_record() for prediction in self.predictions],
            "advice": [advice.as_record() for advice in self.advice],
        }


def judge(findings: SpeedTestResult, settings: Transfer, *, archives: bool = False) -> Diagnosis:
    """Return the diagnosis for an installation with these settings.

    `archives` says whether its tiny files are kept in archives. Without a measured connection to
    the staging host, there are no recommendations.
    """
    mode = choose_mode(findings, settings, archived=archives)
    predictions = tuple(predict(findings, mode, workload) for workload in Workload)
    if not findings.floods():
        return Diagnosis(_format_sentence(findings, predictions), predictions, ())
    advice = list(_advise(findings, settings, mode, predictions))
    relieved = [_recommend_relief(findings, mode, prediction) for prediction in predictions]
    advice += [one for one in relieved if one]
    return Diagnosis(
        _format_sentence(findings, predictions), predictions, tuple(_best_of_each(advice))
    )


def choose_mode(
    findings: SpeedTestResult, settings: Transfer, *, archived: bool = False
) -> TransferMode:
    """Return the transfer mode that the settings lead to.

    If the number of channels is automatic, it is two, as at the start of a run, or the number of
    cores if larger. It is higher if more channels were clearly faster, unless processors were the
    limit: then the difference is chance.
    """
    rates = {number: one.value for number, one in findings.floods().items()}
    enough = max(2, findings.here.cpus or 1)
    best = max((number for number in rates if number <= enough), default=1)
    for number in sorted(rates):
        if number <= best or is_short_of_processors(findings, best):
            continue
        if rates[number] >= _CLEARLY * rates.get(best, 0.0):
            best = number
    return TransferMode(findings.cipher, settings.channels or best, archived=archived)


def _advise(
    findings: SpeedTestResult,
    settings: Transfer,
    mode: TransferMode,
    before: tuple[Prediction, ...],
) -> Iterator[Recommendation]:
    """Yield each single change of settings that makes a workload faster."""
    for code, text, other, changes in _options(findings, settings, mode):
        for was in before:
            gain = _gain(was, predict(findings, other, was.workload))
            if gain >= _WORTH:
                yield Recommendation(code, text, gain, was.workload, changes)


def _options(
    findings: SpeedTestResult, settings: Transfer, mode: TransferMode
) -> Iterator[tuple[str, str, TransferMode, Mapping[str, object]]]:
    order = _order_ciphers(findings)
    if order and order[0] != mode.cipher:
        changes: dict[str, object] = {"transfer.ciphers": reorder(settings.ciphers, order)}
        yield "cipher", f"Offer {order[0]} first.", mode._replace(cipher=order[0]), changes
    best = choose_mode(findings, settings.with_values(channels=0)).channels
    if settings.channels and best != settings.channels:
        text = f"Choose the number of channels automatically: {best} carried the most."
        yield "channels", text, mode._replace(channels=best), {"transfer.channels": 0}
    if findings.find(StageResult.CHANNELS, in_usual_batches(carried(TINY_FILES))):
        changes = {f"transfer.{key}": most for key, most in _usual_batches(settings).items()}
        text = "Send more tiny files together: use the default batch sizes."
        yield "batches", text, mode._replace(usual_batches=True), changes
    ratio = findings.value(StageResult.SOURCE, COMPRESSED) or 1.0
    if settings.compression == "never" and findings.zstd and ratio < _SHRINKS:
        text = f"Compress during transfer: your data shrinks to {ratio:.0%}."
        changes = {"transfer.compression": "auto"}
        yield "compression", text, mode._replace(shrunk=ratio), changes
    if not mode.archived:
        text = "Keep tiny files in archives, which need one record each: see archive.rules."
        yield "archives", text, mode._replace(archived=True), {}


def _usual_batches(settings: Transfer) -> Mapping[str, int]:
    """Return the default of each batch setting whose value makes batches smaller."""
    usual = Transfer()
    defaults = {key: getattr(usual, key) for key in _BATCHES}
    return {key: most for key, most in defaults.items() if getattr(settings, key) < most}


def _order_ciphers(findings: SpeedTestResult) -> list[str]:
    """Return the measured ciphers, the cheapest first.

    Costs on the wire vary between samples. Ciphers of nearly the same cost are therefore ordered by
    their speed on this computer alone.
    """
    costs = {cipher: _find_cost(findings, cipher) for cipher in findings.ciphers()}
    nearly = _NEARLY * min(costs.values(), default=0.0)

    def rank(cipher: str) -> tuple[bool, float, float]:
        alone = findings.value(StageResult.CIPHER, local(cipher)) or 0.0
        is_dear = costs[cipher] > nearly
        return is_dear, 0.0 if is_dear else -alone, costs[cipher]

    return sorted(costs, key=rank)


def reorder(ciphers: Sequence[str], first: Sequence[str]) -> list[str]:
    """Return all `ciphers`, those of `first` in its order and the others after them.

    Unmeasured ciphers stay in the list, because another host may need them.
    """
    named = [cipher for cipher in first if cipher in ciphers]
    return [*named, *(cipher for cipher in ciphers if cipher not in named)]


def _find_cost(findings: SpeedTestResult, cipher: str) -> float:
    """Return the seconds for a byte: of the processors, or on the wire if these are unknown."""
    here, there, *_ = encryption(findings, cipher)
    if here and there:
        return here + there
    return inverse(findings.value(StageResult.CIPHER, cipher))


def _recommend_relief(
    findings: SpeedTestResult, mode: TransferMode, was: Prediction
) -> Recommendation | None:
    """Return the change that would remove the bottleneck itself, if it is worth it."""
    if was.limit is None or was.behind is None or _is_unclear(findings, was.limit):
        return None
    if was.limit is StageResult.CHANNELS and findings.in_folder:
        return None  # a run finds the best number itself, unless it is set
    if was.limit is StageResult.CHANNELS and _are_batches_slow(findings, was.workload):
        return None  # batches have to be fixed first
    gain = _gain(was, predict(findings, mode._replace(relieved=was.limit), was.workload))
    if gain < _WORTH:
        return None
    behind = _upper(_name(findings, was.behind, was.workload))
    text = f"{_RELIEF[was.limit]} {behind} is the next limit."
    return Recommendation("relief", text, gain, was.workload)


def _gain(before: Prediction, after: Prediction) -> float:
    return after.rate / before.rate if before.rate else 1.0


def _best_of_each(advice: list[Recommendation]) -> Iterator[Recommendation]:
    """Yield each recommendation once, for the workload that gains most; settings come first."""
    best: dict[str, Recommendation] = {}
    for one in advice:
        if one.text not in best or one.gain > best[one.text].gain:
            best[one.text] = one
    yield from sorted(best.values(), key=lambda one: (not one.changes, -one.gain))


def _format_sentence(findings: SpeedTestResult, predictions: tuple[Prediction, ...]) -> str:
    """Return one sentence about large and tiny files."""
    large, _, tiny = predictions
    parts = []
    if large.limit:
        parts.append(
            f"for large files {_name(findings, large.limit)} ({_format_rate(findings, large)})"
        )
    if tiny.limit:
        name = _name(findings, tiny.limit, Workload.TINY)
        parts.append(f"for tiny ones {name} ({tiny.files:,.0f} files/s)")
    if not parts:
        return "Nothing could be measured that predicts the speed of an upload."
    if not findings.floods():
        if findings.in_folder:
            return (
                f"The mounted folder was not measured; without it the limit is {', '.join(parts)}."
            )
        return f"The network was not measured; without it the limit is {', '.join(parts)}."
    return f"The limit is {', '.join(parts)}."


def _name(
    findings: SpeedTestResult, stage: StageResult, workload: Workload = Workload.LARGE
) -> str:
    """Return the words for a stage; processors that both sides share have words of their own."""
    if _is_unclear(findings, stage):
        return f"{NAMES[stage]} or {NAMES[StageResult.SERVER_DISK]}"
    if stage is StageResult.CHANNELS:
        name = "the number of channels" if findings.in_folder else NAMES[stage]
        slow = _are_batches_slow(findings, workload)
        return f"{name} or the size of batches" if slow else name
    if findings.one_machine and stage in _WORK:
        return f"the processors that both sides share, mainly {_WORK[stage]}"
    return NAMES[stage]


def _are_batches_slow(findings: SpeedTestResult, workload: Workload) -> bool:
    """Return whether default batch sizes would send such files faster than the settings do."""
    tiny = carried(TINY_FILES)
    now, usual = (
        findings.value(StageResult.CHANNELS, what) or 0.0 for what in (tiny, in_usual_batches(tiny))
    )
    return workload is not Workload.LARGE and usual >= _WORTH * now > 0


def _is_unclear(findings: SpeedTestResult, stage: StageResult) -> bool:
    """Return whether the limit may be the server's disk, because floods over SFTP write to it."""
    return stage is StageResult.NETWORK and findings.rung == "sftp"


def _format_rate(findings: SpeedTestResult, large: Prediction) -> str:
    """Return the predicted speed of large files, and the measured one if the network was full."""
    reached = findings.value(StageResult.CHANNELS, carried(LARGE_FILES)) or 0.0
    if large.limit is StageResult.NETWORK and reached >= _FULL * large.rate:
        most = min(reached, large.rate)
        return f"it is full: {format_size(most)}/s of {format_size(large.rate)}/s"
    return f"{format_size(large.rate)}/s"


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]
