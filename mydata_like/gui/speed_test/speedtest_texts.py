"""The sentences of a speed test in the language of the window."""

import re
from collections.abc import Mapping
from statistics import median
from typing import Final

from PySide6.QtCore import QT_TRANSLATE_NOOP, QCoreApplication, QLocale

from mydata_like.gui.speed_test.speedtest_process import (
    STAGES,
    TOGETHER,
    WORKLOADS,
    ReportedComparison,
    ReportedSpeed,
    ReportedValue,
    SpeedTestReport,
)
from mydata_like.gui.theme import texts


def stage_title(stage: str) -> str:
    """Return the name of a stage as a title."""
    return {
        "source": translate("speed", "Disk of this computer"),
        "hash": translate("speed", "Checksums"),
        "cipher": translate("speed", "Encryption"),
        "network": translate("speed", "Connection"),
        "channels": translate("speed", "All together"),
        "server cpu": translate("speed", "Staging host's processors"),  # of earlier versions
        "server disk": translate("speed", "Disk of the server"),
        "folder": translate("speed", "Mounted folder"),
        "API": translate("speed", "Server's API"),
        "compared": translate("speed", "Comparison"),
    }.get(stage, stage)


def stage_phrase(stage: str) -> str:
    """Return the name of a part as the subject of a sentence."""
    return {
        "source": translate("speed", "the disk of this computer"),
        "hash": translate("speed", "computing checksums on this computer"),
        "network": translate("speed", "the connection to the server's storage"),
        "server disk": translate("speed", "the disk of the server"),
        "folder": translate("speed", "the mounted folder"),
        "API": translate("speed", "the server in earlier runs"),
    }.get(stage, stage)


def workload_title(workload: str) -> str:
    """Return the title of a workload."""
    return {
        "large": translate("speed", "Large files"),
        "tiny": translate("speed", "Tiny files"),
    }.get(workload, workload)


def rate_of(workload: str, rate: float) -> str:
    """Return a rate as text: files a second for tiny files, bytes a second for others."""
    return files_a_second(rate) if workload == "tiny" else texts.rate(rate)


def files_a_second(files: float) -> str:
    """Return a rate of files as text, as in `4,512 files/s`."""
    digits = 1 if files < 10 else 0
    number = QLocale().toString(files, "f", digits)
    return translate("speed", "%1 files/s").replace("%1", number)


def figure_title(figure: ReportedValue) -> str:
    """Return the name of what was measured."""
    return measurement_title(figure.what)


def measurement_title(what: str) -> str:
    """Return the name of a measurement or of a part of a test."""
    if counted := re.fullmatch(r"(\d+) (channel|session|connection)s?", what):
        number = int(counted[1])
        return {
            "channel": translate("speed", "%Ln channel(s)", None, number),
            "session": translate("speed", "%Ln session(s)", None, number),
            "connection": translate("speed", "%Ln connection(s)", None, number),
        }[counted[2]]
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
        "compressed size": translate("speed", "Size when compressed"),
        "rename": translate("speed", "Renaming a file"),
        "records, in earlier runs": translate("speed", "Records, in earlier runs"),
        "root": translate("speed", "Shortest answer"),
        "one page of a listing": translate("speed", "One page of a listing"),
        "statistics": translate("speed", "Statistics"),
        "together, large files": translate("speed", "All together, large files"),
        "together, tiny files": translate("speed", "All together, tiny files"),
        "Checksums": translate("speed", "Checksums"),
        "The disk of this computer": translate("speed", "Disk of this computer"),
        "The connection to the server": translate("speed", "Connection to the server"),
        "The API": translate("speed", "Server's API"),
        "Compression": translate("speed", "Compression"),
        "Ciphers here": translate("speed", "Ciphers on this computer"),
        "The disk of the server": translate("speed", "Disk of the server"),
        "The mounted folder": translate("speed", "Mounted folder"),
        "All together": translate("speed", "All together"),
        "Comparison of settings": translate("speed", "Comparison of settings"),
    }


def figure_value(figure: ReportedValue) -> str:
    """Return the median of a measurement with its unit."""
    return _value(figure.median, figure.unit)


def figure_spread(figure: ReportedValue) -> str:
    """Return the lowest and the highest value if they differ much; empty otherwise."""
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


say = QCoreApplication.translate  # another name, because lupdate rejects non-literal texts

# Sentences of `speedtest`, `app` and `engine.gate`; the first that matches is
# used. %1 and %2 are names of measurements, or quoted text.
_SENTENCES: Final = (
    QT_TRANSLATE_NOOP(
        "speed",
        "The staging host allows no shell: the connection to it and its disk could not be measured "
        "alone.",
    ),
    QT_TRANSLATE_NOOP(
        "speed",
        "The speed of registering and verifying was not measured, because a test must not leave "
        "records and no earlier run had to wait for it.",
    ),
    QT_TRANSLATE_NOOP(
        "speed",
        "The staging host cannot remove files: nothing was sent, and only "
        "this computer and the API were measured.",
    ),
    QT_TRANSLATE_NOOP(
        "speed", "The data directory has too few large files to measure how fast they are read."
    ),
    QT_TRANSLATE_NOOP(
        "speed", "The data directory has too few tiny files to measure how fast they are read."
    ),
    QT_TRANSLATE_NOOP(
        "speed", "The connection to the server was not measured: ask for approval first."
    ),
    QT_TRANSLATE_NOOP(
        "speed", "The connection to the server was not measured: the staging area has no host."
    ),
    QT_TRANSLATE_NOOP(
        "speed", "The connection to the server was not measured: files are sent over HTTP."
    ),
    QT_TRANSLATE_NOOP(
        "speed", "The connection to the server was not measured: files are sent to object storage."
    ),
    QT_TRANSLATE_NOOP("speed", "The connection to the server was not measured: %1"),
    QT_TRANSLATE_NOOP("speed", "%1 could not be fully measured: %2"),
    QT_TRANSLATE_NOOP("speed", "%1: there was no time left to measure this."),
    QT_TRANSLATE_NOOP(
        "speed", "%1 on the staging host could not be removed; the next test removes it."
    ),
    QT_TRANSLATE_NOOP("speed", "%1 in the folder could not be removed; the next test removes it."),
    QT_TRANSLATE_NOOP("speed", "%1: %2"),
)


_SHAPES: Final = tuple(
    (sentence, re.compile(re.sub("%[12]", "(.+?)", re.escape(sentence)), re.DOTALL))
    for sentence in map(str, _SENTENCES)
)


def interpret(reported: str) -> str:
    """Return a sentence of a speed test in the language of the window, if a translation exists."""
    reported = reported.replace(" (register)", "")  # a command; the window has a button for it
    said = texts.engine_text(reported)
    if said != texts.plain(reported):
        return said
    for sentence, shape in _SHAPES:
        if match := shape.fullmatch(reported):
            return _fill(say("speed", sentence), [interpret(part) for part in match.groups()])
    return measurement_title(reported)


def _fill(text: str, parts: list[str]) -> str:
    return re.sub("%([12])", lambda mark: parts[int(mark[1]) - 1], text)


translate = QCoreApplication.translate

NOTHING: Final = ReportedSpeed({}, "")
_MUCH = 0.25  # the share of this computer from which the load of others is mentioned


def limit_sentence(report: SpeedTestReport) -> str:
    """Return sentences on the speeds of large and tiny files, and the slowest part of each."""
    lines = []
    for workload in WORKLOADS:
        speed = report.speeds.get(workload, NOTHING)
        together, limit = speed.rates.get(TOGETHER), speed.limit
        if together and limit:
            text = translate("speed", "%1: %2. The limit is %3 (%4).")
        elif together:
            text = translate("speed", "%1: %2.")
        elif limit:
            text = translate("speed", "%1: not sent. The limit is %3 (%4).")
        else:
            continue
        text = text.replace("%1", workload_title(workload)).replace("%3", stage_phrase(limit))
        text = text.replace("%2", rate_of(workload, together or 0.0))
        lines.append(text.replace("%4", rate_of(workload, speed.rates.get(limit, 0.0))))
    return "\n".join(lines) or translate("speed", "Nothing could be measured.")


def advice_lines(report: SpeedTestReport, locks: Mapping[str, str]) -> list[str]:
    """Return a line for each recommendation, with its gain and who locked its settings, if any."""
    lines = []
    for advice in report.advice:
        gain = translate("speed", "%1: %2 times as fast")
        gain = gain.replace("%1", workload_title(advice.workload))
        gain = gain.replace("%2", texts.decimal(round(advice.gain, 1)))
        text = f"{comparison_title(advice, report)} ({gain})"
        if holders := {locks[key] for key in advice.changes if key in locks}:
            locked = translate("speed", "Locked by %1.")
            text += " " + locked.replace("%1", texts.plain(", ".join(holders)))
        lines.append(text)
    return lines


def tried_lines(report: SpeedTestReport) -> list[str]:
    """Return a line for each change of settings that was not faster twice, with both speeds."""
    return [
        translate("speed", "%1 (%2: %3, now %4)")
        .replace("%1", comparison_title(one, report))
        .replace("%2", workload_title(one.workload))
        .replace("%3", _value(median(one.after), one.unit))
        .replace("%4", _value(median(one.before), one.unit))
        for one in report.compared
        if not one.won
    ]


def comparison_title(one: ReportedComparison, report: SpeedTestReport | None = None) -> str:
    """Return the change of settings that was tried."""
    figures = report.figures if report else ()
    sizes = [figure_value(figure) for figure in figures if figure.what == "compressed size"]
    ciphers = one.changes.get("transfer.ciphers")
    first = texts.plain(str(ciphers[0])) if isinstance(ciphers, list) and ciphers else "?"
    offer = translate("speed", "Offer the cipher %1 first.")
    compress = translate("speed", "Compress during transfer: your data shrinks to %1.")
    return {
        "cipher": offer.replace("%1", first),
        "channels": translate("speed", "Choose the number of channels automatically."),
        "batches": translate(
            "speed", "Send more tiny files together: use the default batch sizes."
        ),
        "compression": compress.replace("%1", sizes[0] if sizes else "?"),
    }.get(one.code, texts.plain(one.text))


def as_figure(one: ReportedComparison) -> ReportedValue:
    """Return a comparison as a row of the table of figures: the speed with the change."""
    after, title = one.after, comparison_title(one)
    return ReportedValue("compared", title, one.unit, median(after), min(after), max(after))


def unknown_lines(report: SpeedTestReport) -> list[str]:
    """Return a line for each part that was not measured, or not reliably, and why."""
    lines = [interpret(sentence) for sentence in report.unknown]
    if report.busy <= _MUCH:
        return lines
    text = translate("speed", "Other programs used %1 % of this computer: it may be faster alone.")
    return [text.replace("%1", texts.count(round(report.busy * 100))), *lines]


def report_name(report: SpeedTestReport) -> str:
    """Return the time of a test, and whether it was a quick one."""
    at = texts.moment(report.at)
    return translate("speed", "%1, quick").replace("%1", at) if report.quick else at


def report_text(report: SpeedTestReport) -> str:
    """Return all results of a speed test as text, to be sent to an administrator."""
    lines = [
        translate("speed", "Speed test of mydata-like, %1").replace("%1", report_name(report)),
        limit_sentence(report),
    ]
    for workload in WORKLOADS:
        lines += ["", workload_title(workload), *_stage_lines(report, workload)]
    sections = (
        (translate("speed", "Recommendations"), advice_lines(report, {})),
        (translate("speed", "Tried, not faster twice"), tried_lines(report)),
        (translate("speed", "What could not be measured"), unknown_lines(report)),
        (translate("speed", "All figures"), [_format_figure(one) for one in report.figures]),
    )
    for title, rows in sections:
        if rows:
            lines += ["", title, *(f"- {row}" for row in rows)]
    return "\n".join(lines) + "\n"


def _stage_lines(report: SpeedTestReport, workload: str) -> list[str]:
    """Return a line for each part with its speed alone; the slowest one is marked."""
    speed, mark = report.speeds.get(workload, NOTHING), translate("speed", " (the slowest)")
    return [
        f"{stage_title(stage)}: {rate_of(workload, speed.rates[stage])}"
        f"{mark if stage == speed.limit else ''}"
        for stage in (*STAGES, TOGETHER)
        if stage in speed.rates
    ]


def _format_figure(figure: ReportedValue) -> str:
    spread = figure_spread(figure)
    more = f" ({spread})" if spread else ""
    return f"{stage_title(figure.stage)}, {figure_title(figure)}: {figure_value(figure)}{more}"
