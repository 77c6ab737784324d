"""The sentences of a speed test in the language of the window."""

import re
from collections.abc import Collection, Mapping
from typing import Final

from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication, QLocale

from mydata_like.gui.speed_test.speedtest_process import (
    STAGES,
    Improvement,
    ReportedAdvice,
    ReportedPrediction,
    ReportedValue,
    SpeedTestReport,
)
from mydata_like.gui.theme import texts


def stage_title(stage: str) -> str:
    """Return what a stage is called where it stands alone."""
    return {
        "source": translate("speed", "Disk of this computer"),
        "hash": translate("speed", "Checksums"),
        "cipher": translate("speed", "Encryption"),
        "network": translate("speed", "Network"),
        "channels": translate("speed", "Channels"),
        "server cpu": translate("speed", "Staging host's processors"),
        "server disk": translate("speed", "Disk of the server"),
        "API": translate("speed", "Server's API"),
    }.get(stage, stage)


def stage_phrase(stage: str, *, one_machine: bool) -> str:
    """Return what a stage is called within a sentence, as its subject."""
    shared = {
        "hash": translate("speed", "the processors that both sides share (most of all checksums)"),
        "cipher": translate(
            "speed", "the processors that both sides share (most of all encryption)"
        ),
        "server cpu": translate(
            "speed", "the processors that both sides share (most of all receiving)"
        ),
    }
    if one_machine and stage in shared:
        return shared[stage]
    return {
        "source": translate("speed", "the disk of this computer"),
        "hash": translate("speed", "computing checksums on this computer"),
        "cipher": translate("speed", "encryption on this computer"),
        "network": translate("speed", "the network"),
        "channels": translate("speed", "the number of channels over this distance"),
        "server cpu": translate("speed", "the processors of the staging host"),
        "server disk": translate("speed", "the disk of the server"),
        "API": translate("speed", "the server's API"),
    }.get(stage, stage)


def workload_title(workload: str) -> str:
    """Return what files of a workload are called."""
    return {
        "large": translate("speed", "Large files"),
        "mixed": translate("speed", "Mixed files"),
        "tiny": translate("speed", "Tiny files"),
    }.get(workload, workload)


def rate_of(workload: str, forecast: ReportedPrediction, rate: float) -> str:
    """Return a rate in the unit that suits such files: tiny files are counted."""
    if workload != "tiny" or not forecast.rate:
        return texts.rate(rate)
    return files_a_second(rate * forecast.files / forecast.rate)


def files_a_second(files: float) -> str:
    """Return a pace of files, as in `4,512 files/s`."""
    digits = 1 if files < 10 else 0
    number = QLocale().toString(files, "f", digits)
    return translate("speed", "%1 files/s").replace("%1", number)


def figure_title(figure: ReportedValue) -> str:
    """Return what was measured."""
    return measurement_title(figure.what)


def measurement_title(what: str) -> str:
    """Return what a measurement is called, or a part of a test."""
    first, _, rest = what.partition(" ")
    if first.isdigit() and rest.startswith("channel"):
        return translate("speed", "%Ln channel(s)", None, int(first))
    if first.isdigit() and rest.startswith("connection"):
        return translate("speed", "%Ln connection(s)", None, int(first))
    if what.endswith(", here"):
        name = texts.plain(what.removesuffix(", here"))
        return translate("speed", "%1, on one core here").replace("%1", name)
    return _titles().get(what, texts.plain(what))


def _titles() -> dict[str, str]:
    return {
        "large files": translate("speed", "Large files"),
        "tiny files": translate("speed", "Tiny files"),
        "MD5, one core": translate("speed", "MD5 on one core"),
        "MD5, all cores": translate("speed", "MD5 on all cores"),
        "round trip": translate("speed", "Round trip"),
        "connection set-up": translate("speed", "Connection set-up"),
        "window over round trip, each channel": translate("speed", "Maximum of one channel"),
        "compressed size": translate("speed", "Size when compressed"),
        "compression, one core": translate("speed", "Compression on one core"),
        "records, in earlier runs": translate("speed", "Records, in earlier runs"),
        "root": translate("speed", "Shortest answer"),
        "one page of a listing": translate("speed", "One page of a listing"),
        "statistics": translate("speed", "Statistics"),
        "together, large files": translate("speed", "All together, large files"),
        "together, tiny files": translate("speed", "All together, tiny files"),
        "together, tiny files, in batches as usual": translate(
            "speed", "All together, tiny files, in batches as usual"
        ),
        "Checksums": translate("speed", "Checksums"),
        "The disk of this computer": translate("speed", "Disk of this computer"),
        "The way to the server": translate("speed", "Way to the server"),
        "The API": translate("speed", "Server's API"),
        "Compression": translate("speed", "Compression"),
        "Ciphers here": translate("speed", "Ciphers on this computer"),
        "The disk of the server": translate("speed", "Disk of the server"),
        "All together": translate("speed", "All together"),
    }


def figure_value(figure: ReportedValue) -> str:
    """Return the median with its unit."""
    return _value(figure.median, figure.unit)


def figure_spread(figure: ReportedValue) -> str:
    """Return both ends of what was measured, where they lie wide apart."""
    if figure.highest - figure.lowest <= 0.25 * figure.median:
        return ""
    ends = (_value(end, figure.unit) for end in (figure.lowest, figure.highest))
    return translate("speed", "%1 to %2").replace("%1", next(ends)).replace("%2", next(ends))


def _value(number: float, unit: str) -> str:
    match unit:
        case "bytes/s":
            return texts.rate(number)
        case "files/s":
            return files_a_second(number)
        case "seconds":
            digits = QLocale().toString(number * 1000, "f", 1)
            return translate("speed", "%1 ms").replace("%1", digits)
        case "share":
            return translate("speed", "%1 %").replace("%1", texts.count(round(number * 100)))
        case _:
            digits = texts.count(round(number))
            return translate("speed", "%1 requests/s").replace("%1", digits)


say = QCoreApplication.translate  # another name, since it gets no literal text

# Sentences of `doctor`, `app.examining`, `app.quiet` and `engine.restraint`; the first
# that fits counts. For %1 and %2 they name what is measured, or quote.
_SAID: Final = (
    QT_TRANSLATE_NOOP(
        "speed",
        "The staging host allows no shell: its processors, its disk without the network, the "
        "round trip and tiny files could not be measured.",
    ),
    QT_TRANSLATE_NOOP(
        "speed",
        "The speed of registering and verifying was not measured, since a test must not leave "
        "records, and no earlier run had to wait for it.",
    ),
    QT_TRANSLATE_NOOP(
        "speed",
        "The staging host allows only scp, which cannot remove files: nothing was sent, and only "
        "this computer and the API were measured.",
    ),
    QT_TRANSLATE_NOOP(
        "speed",
        "The improvement was not measured: the staging host no longer allows a shell.",
    ),
    QT_TRANSLATE_NOOP(
        "speed", "The data directory has too few large files to tell how fast it reads them."
    ),
    QT_TRANSLATE_NOOP(
        "speed", "The data directory has too few tiny files to tell how fast it reads them."
    ),
    QT_TRANSLATE_NOOP("speed", "The way to the server was not measured: ask for approval first."),
    QT_TRANSLATE_NOOP(
        "speed", "The way to the server was not measured: the staging area has no host."
    ),
    QT_TRANSLATE_NOOP("speed", "The way to the server was not measured: files are sent over HTTP."),
    QT_TRANSLATE_NOOP("speed", "The way to the server was not measured: %1"),
    QT_TRANSLATE_NOOP("speed", "%1 could not be measured to the end: %2"),
    QT_TRANSLATE_NOOP("speed", "%1: there was no time left to measure this."),
    QT_TRANSLATE_NOOP("speed", "%1 on the staging host could not be removed; the next test will."),
    QT_TRANSLATE_NOOP("speed", "A speed test would disturb the instrument or its network now. %1"),
    QT_TRANSLATE_NOOP(
        "speed", "The bandwidth is limited to %1 now, but a test sends as fast as it can."
    ),
    QT_TRANSLATE_NOOP("speed", "Quiet hours fill the whole week: nothing is ever sent."),
    QT_TRANSLATE_NOOP("speed", "Quiet hours: nothing new is sent until %1."),
    QT_TRANSLATE_NOOP("speed", "%1 is running: nothing new is sent."),
    QT_TRANSLATE_NOOP("speed", "There is no earlier speed test to continue from."),
    QT_TRANSLATE_NOOP("speed", "Run a new one."),
    QT_TRANSLATE_NOOP("speed", "The speed test ended unexpectedly (%1)."),
    QT_TRANSLATE_NOOP(
        "speed", "Make it once more: that also removes what this one left on the server."
    ),
    QT_TRANSLATE_NOOP("speed", "%1: %2"),
)


def _shape(sentence: str) -> re.Pattern[str]:
    """Return what fits a sentence, whatever stands for its marks."""
    return re.compile(re.sub("%[12]", "(.+?)", re.escape(sentence)), re.DOTALL)


_SHAPES: Final = tuple((sentence, _shape(sentence)) for sentence in map(str, _SAID))


def interpret(said: str) -> str:
    """Return a sentence in the window's language, as far as it is known."""
    said = said.replace(" (register)", "")  # a command, which the window has a button for
    for sentence, shape in _SHAPES:
        if match := shape.fullmatch(said):
            text = say("speed", sentence)
            return _fill(text, [interpret(part) for part in match.groups()])
    return measurement_title(said)


def _fill(text: str, parts: list[str]) -> str:
    return re.sub("%([12])", lambda mark: parts[int(mark[1]) - 1], text)


translate = QCoreApplication.translate

_MUCH = 0.25  # of this computer


def limit_sentence(report: SpeedTestReport) -> str:
    """Return the one plain sentence: the limit for large files and for tiny ones."""
    large, tiny = _name_limit(report, "large"), _name_limit(report, "tiny")
    if large and not tiny and report.reached:
        text = translate(
            "speed", "The limit is %1 for large files. What it is for tiny ones cannot be told."
        )
        return text.replace("%1", large)
    if not large or not tiny:
        return translate("speed", "Nothing could be measured that predicts the speed of an upload.")
    text = (
        translate("speed", "The limit is %1 for large files, and %2 for tiny ones.")
        if report.reached
        else translate(
            "speed",
            "The way to the server was not measured. Before it, the limit is %1 for large files, "
            "and %2 for tiny ones.",
        )
    )
    return text.replace("%1", large).replace("%2", tiny)


def _name_limit(report: SpeedTestReport, workload: str) -> str:
    forecast = report.forecasts.get(workload)
    if forecast is None or not forecast.limit:
        return ""
    text = translate("speed", "%1 at %2", "a limit at its speed")
    text = text.replace("%1", _name_stage(report, forecast.limit, workload))
    return text.replace("%2", rate_of(workload, forecast, forecast.rate))


def _name_stage(report: SpeedTestReport, stage: str, workload: str) -> str:
    """Return what a stage is called within a sentence about a test."""
    if stage == "network" and report.without_shell:
        return translate("speed", "the network or the disk of the server")
    small_batches = any(one.code == "batches" for one in report.advice)
    if stage == "channels" and small_batches and workload != "large":
        return translate(
            "speed", "the number of channels over this distance or the size of batches"
        )
    return stage_phrase(stage, one_machine=report.one_machine)


def behind_sentence(report: SpeedTestReport, workload: str) -> str:
    """Return what would be the next limit for such files; empty where there is none."""
    forecast = report.forecasts.get(workload)
    if forecast is None or not forecast.behind:
        return ""
    text = translate("speed", "The next limit is %1, which alone would reach %2.")
    text = text.replace("%1", _name_stage(report, forecast.behind, workload))
    return text.replace("%2", rate_of(workload, forecast, forecast.rates[forecast.behind]))


def advice_lines(report: SpeedTestReport, locks: Mapping[str, str]) -> list[str]:
    """Return what would be faster and by how much; what is locked says by whom."""
    return [_tell_advice(report, each, locks) for each in report.advice]


def _tell_advice(report: SpeedTestReport, advice: ReportedAdvice, locks: Mapping[str, str]) -> str:
    gain = translate("speed", "%1: %2 times as fast")
    gain = gain.replace("%1", workload_title(advice.workload))
    gain = gain.replace("%2", texts.decimal(round(advice.gain, 1)))
    text = f"{_name_advice(report, advice)} ({gain})"
    holders = {locks[key] for key in advice.changes if key in locks}
    if not holders:
        return text
    locked = translate("speed", "Locked by %1.").replace("%1", texts.plain(", ".join(holders)))
    return f"{text} {locked}"


def _name_advice(report: SpeedTestReport, advice: ReportedAdvice) -> str:
    shrunk = report.find("compressed size")
    size = figure_value(shrunk) if shrunk else "?"
    ciphers = advice.changes.get("transfer.ciphers")
    first = texts.plain(str(ciphers[0])) if isinstance(ciphers, list) and ciphers else "?"
    offer = translate("speed", "Offer the cipher %1 first.")
    compress = translate("speed", "Compress during transfer: your data shrinks to %1.")
    return {
        "cipher": offer.replace("%1", first),
        "channels": translate("speed", "Let the program find the number of channels."),
        "batches": translate("speed", "Let more tiny files travel together, as by default."),
        "compression": compress.replace("%1", size),
        "archives": translate(
            "speed", "Keep tiny files in archives, which have one record each (archive.rules)."
        ),
        "relief": _name_relief(report, advice),
    }.get(advice.code, texts.plain(advice.text))


def _name_relief(report: SpeedTestReport, advice: ReportedAdvice) -> str:
    """Return what somebody else could do about the limit, and what comes next."""
    forecast = report.forecasts[advice.workload]
    faster = translate("speed", "More or faster processors in this computer would help.")
    relief = {
        "source": translate(
            "speed", "A faster disk, or less use of it by other programs, would help."
        ),
        "hash": faster,
        "cipher": faster,
        "network": translate(
            "speed", "A faster network between here and the staging host would help."
        ),
        "channels": translate(
            "speed", "A closer staging host, or one with larger SSH windows, would help."
        ),
        "server cpu": translate(
            "speed", "More cores for the staging host, or several hosts, would help."
        ),
        "server disk": translate("speed", "Faster storage behind the staging host would help."),
        "API": translate("speed", "More workers for the server's web application would help."),
    }.get(forecast.limit, texts.plain(advice.text))
    if not forecast.behind:
        return relief
    following = translate("speed", "After that the limit is %1.")
    following = following.replace("%1", _name_stage(report, forecast.behind, advice.workload))
    return f"{relief} {following}"


def gain_lines(gains: Collection[Improvement]) -> list[str]:
    """Return what was measured before and after settings were changed."""
    return [_tell_gain(gain) for gain in gains]


def _tell_gain(gain: Improvement) -> str:
    if gain.before is None:
        text = translate("speed", "%1: %2 now")
    else:
        text = translate("speed", "%1: %3 before, %2 now")
        text = text.replace("%3", figure_value(gain.before))
    text = text.replace("%1", figure_title(gain.after))
    return text.replace("%2", figure_value(gain.after))


def unknown_lines(report: SpeedTestReport) -> list[str]:
    """Return what could not be measured, or not well, and why."""
    lines = [interpret(sentence) for sentence in report.unknown]
    if report.busy <= _MUCH:
        return lines
    text = translate("speed", "Other programs took %1 % of this computer: it may be faster alone.")
    return [text.replace("%1", texts.count(round(report.busy * 100))), *lines]


def report_name(report: SpeedTestReport) -> str:
    """Return when a test was made, and whether it was a short one."""
    at = texts.moment(report.at)
    return translate("speed", "%1, quick").replace("%1", at) if report.quick else at


def report_text(report: SpeedTestReport) -> str:
    """Return all of a speed test as text, to be sent to somebody who can do something about it."""
    lines = [
        translate("speed", "Speed test of mydata-like, %1").replace("%1", report_name(report)),
        limit_sentence(report),
    ]
    for workload in report.forecasts:
        lines += ["", workload_title(workload), *stage_lines(report, workload)]
        lines += filter(None, [behind_sentence(report, workload)])
    sections = (
        (translate("speed", "What would be faster"), advice_lines(report, {})),
        (
            translate("speed", "What it gained"),
            gain_lines(report.proof.gains if report.proof else ()),
        ),
        (translate("speed", "What could not be measured"), unknown_lines(report)),
        (translate("speed", "All figures"), [_tell_figure(one) for one in report.figures]),
    )
    for title, rows in sections:
        if rows:
            lines += ["", title, *(f"- {row}" for row in rows)]
    return "\n".join(lines) + "\n"


def stage_lines(report: SpeedTestReport, workload: str) -> list[str]:
    """Return how fast each stage would be alone, a line each; the limit is marked."""
    forecast = report.forecasts[workload]
    lines = []
    for stage in STAGES:
        if stage in forecast.rates:
            rate = rate_of(workload, forecast, forecast.rates[stage])
            mark = translate("speed", " (the limit)") if stage == forecast.limit else ""
            lines.append(f"{stage_title(stage)}: {rate}{mark}")
    return lines


def _tell_figure(figure: ReportedValue) -> str:
    spread = figure_spread(figure)
    more = f" ({spread})" if spread else ""
    return f"{stage_title(figure.stage)}, {figure_title(figure)}: {figure_value(figure)}{more}"
