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
    """Return the name of a stage as a title."""
    return {
        "source": translate("speed", "Disk of this computer"),
        "hash": translate("speed", "Checksums"),
        "cipher": translate("speed", "Encryption"),
        "network": translate("speed", "Network"),
        "channels": translate("speed", "Channels"),
        "server cpu": translate("speed", "Staging host's processors"),
        "server disk": translate("speed", "Disk of the server"),
        "folder": translate("speed", "Mounted folder"),
        "API": translate("speed", "Server's API"),
    }.get(stage, stage)


def stage_phrase(stage: str, *, one_machine: bool) -> str:
    """Return the name of a stage as the subject of a sentence."""
    shared = {
        "hash": translate("speed", "the processors that both sides share (mainly checksums)"),
        "cipher": translate("speed", "the processors that both sides share (mainly encryption)"),
        "server cpu": translate("speed", "the processors that both sides share (mainly receiving)"),
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
        "folder": translate("speed", "the mounted folder"),
        "API": translate("speed", "the server's API"),
    }.get(stage, stage)


def workload_title(workload: str) -> str:
    """Return the title of a workload."""
    return {
        "large": translate("speed", "Large files"),
        "mixed": translate("speed", "Mixed files"),
        "tiny": translate("speed", "Tiny files"),
    }.get(workload, workload)


def rate_of(workload: str, forecast: ReportedPrediction, rate: float) -> str:
    """Return a rate as text: files a second for tiny files, bytes a second for others."""
    if workload != "tiny" or not forecast.rate:
        return texts.rate(rate)
    return files_a_second(rate * forecast.files / forecast.rate)


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
        "rename": translate("speed", "Renaming a file"),
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
        "The connection to the server": translate("speed", "Connection to the server"),
        "The API": translate("speed", "Server's API"),
        "Compression": translate("speed", "Compression"),
        "Ciphers here": translate("speed", "Ciphers on this computer"),
        "The disk of the server": translate("speed", "Disk of the server"),
        "The mounted folder": translate("speed", "Mounted folder"),
        "All together": translate("speed", "All together"),
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

# Sentences of `speedtest`, `app.speedtest_service` and `engine.gate`; the first that matches is
# used. %1 and %2 are names of measurements, or quoted text.
_SENTENCES: Final = (
    QT_TRANSLATE_NOOP(
        "speed",
        "The staging host allows no shell: its processors, its disk without the network, the "
        "round trip and tiny files could not be measured.",
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
        "speed",
        "The improvement was not measured: the staging host no longer allows a shell.",
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


def _shape(sentence: str) -> re.Pattern[str]:
    """Return a pattern that matches a sentence with any text for %1 and %2."""
    return re.compile(re.sub("%[12]", "(.+?)", re.escape(sentence)), re.DOTALL)


_SHAPES: Final = tuple((sentence, _shape(sentence)) for sentence in map(str, _SENTENCES))


def interpret(reported: str) -> str:
    """Return a sentence of a speed test in the language of the window, if a translation exists."""
    reported = reported.replace(" (register)", "")  # a command; the window has a button for it
    said = texts.engine_text(reported)
    if said != texts.plain(reported):
        return said
    for sentence, shape in _SHAPES:
        if match := shape.fullmatch(reported):
            text = say("speed", sentence)
            return _fill(text, [interpret(part) for part in match.groups()])
    return measurement_title(reported)


def _fill(text: str, parts: list[str]) -> str:
    return re.sub("%([12])", lambda mark: parts[int(mark[1]) - 1], text)


translate = QCoreApplication.translate

_MUCH = 0.25  # the share of this computer from which the load of others is mentioned


def limit_sentence(report: SpeedTestReport) -> str:
    """Return one sentence on the limits for large and for tiny files."""
    large, tiny = _name_limit(report, "large"), _name_limit(report, "tiny")
    if large and not tiny and report.reached:
        text = translate(
            "speed", "The limit is %1 for large files. The limit for tiny files is unknown."
        )
        return text.replace("%1", large)
    if not large or not tiny:
        return translate("speed", "Nothing could be measured that predicts the speed of an upload.")
    if report.reached:
        text = translate("speed", "The limit is %1 for large files, and %2 for tiny ones.")
    elif report.in_folder:
        text = translate(
            "speed",
            "The mounted folder was not measured. Without it, the limit is %1 for large files, and "
            "%2 for tiny ones.",
        )
    else:
        text = translate(
            "speed",
            "The connection to the server was not measured. Without it, the limit is %1 for large "
            "files, and %2 for tiny ones.",
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
    """Return the name of a stage within a sentence about a test."""
    if stage == "network" and report.without_shell:
        return translate("speed", "the network or the disk of the server")
    if stage == "channels":
        return _name_channels(report, workload)
    return stage_phrase(stage, one_machine=report.one_machine)


def _name_channels(report: SpeedTestReport, workload: str) -> str:
    """Return the name of the channels as a limit; small batches may be the cause as well."""
    small_batches = any(one.code == "batches" for one in report.advice) and workload != "large"
    if report.in_folder:
        return (
            translate("speed", "the number of channels or the size of batches")
            if small_batches
            else translate("speed", "the number of channels")
        )
    return (
        translate("speed", "the number of channels over this distance or the size of batches")
        if small_batches
        else translate("speed", "the number of channels over this distance")
    )


def behind_sentence(report: SpeedTestReport, workload: str) -> str:
    """Return a sentence on the next limit for a workload; empty if there is none."""
    forecast = report.forecasts.get(workload)
    if forecast is None or not forecast.behind:
        return ""
    text = translate("speed", "The next limit is %1, which alone would reach %2.")
    text = text.replace("%1", _name_stage(report, forecast.behind, workload))
    return text.replace("%2", rate_of(workload, forecast, forecast.rates[forecast.behind]))


def advice_lines(report: SpeedTestReport, locks: Mapping[str, str]) -> list[str]:
    """Return a line for each recommendation, with its gain and who locked its settings, if any."""
    return [_format_advice(report, each, locks) for each in report.advice]


def _format_advice(
    report: SpeedTestReport, advice: ReportedAdvice, locks: Mapping[str, str]
) -> str:
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
        "channels": translate("speed", "Choose the number of channels automatically."),
        "batches": translate(
            "speed", "Send more tiny files together: use the default batch sizes."
        ),
        "compression": compress.replace("%1", size),
        "archives": translate(
            "speed", "Keep tiny files in archives, which have one record each (archive.rules)."
        ),
        "relief": _name_relief(report, advice),
    }.get(advice.code, texts.plain(advice.text))


def _name_relief(report: SpeedTestReport, advice: ReportedAdvice) -> str:
    """Return a change outside the settings that would raise the limit, and the next limit."""
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
        "folder": translate("speed", "A faster mount, or faster storage behind it, would help."),
        "API": translate("speed", "More workers for the server's web application would help."),
    }.get(forecast.limit, texts.plain(advice.text))
    if not forecast.behind:
        return relief
    following = translate("speed", "After that the limit is %1.")
    following = following.replace("%1", _name_stage(report, forecast.behind, advice.workload))
    return f"{relief} {following}"


def gain_lines(gains: Collection[Improvement]) -> list[str]:
    """Return a line for each measurement before and after settings were changed."""
    return [_format_gain(gain) for gain in gains]


def _format_gain(gain: Improvement) -> str:
    if gain.before is None:
        text = translate("speed", "%1: %2 now")
    else:
        text = translate("speed", "%1: %3 before, %2 now")
        text = text.replace("%3", figure_value(gain.before))
    text = text.replace("%1", figure_title(gain.after))
    return text.replace("%2", figure_value(gain.after))


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
    for workload in report.forecasts:
        lines += ["", workload_title(workload), *stage_lines(report, workload)]
        lines += filter(None, [behind_sentence(report, workload)])
    sections = (
        (translate("speed", "Recommendations"), advice_lines(report, {})),
        (
            translate("speed", "Measured gain"),
            gain_lines(report.proof.gains if report.proof else ()),
        ),
        (translate("speed", "What could not be measured"), unknown_lines(report)),
        (translate("speed", "All figures"), [_format_figure(one) for one in report.figures]),
    )
    for title, rows in sections:
        if rows:
            lines += ["", title, *(f"- {row}" for row in rows)]
    return "\n".join(lines) + "\n"


def stage_lines(report: SpeedTestReport, workload: str) -> list[str]:
    """Return a line for each stage with its speed alone; the limit is marked."""
    forecast = report.forecasts[workload]
    lines = []
    for stage in STAGES:
        if stage in forecast.rates:
            rate = rate_of(workload, forecast, forecast.rates[stage])
            mark = translate("speed", " (the limit)") if stage == forecast.limit else ""
            lines.append(f"{stage_title(stage)}: {rate}{mark}")
    return lines


def _format_figure(figure: ReportedValue) -> str:
    spread = figure_spread(figure)
    more = f" ({spread})" if spread else ""
    return f"{stage_title(figure.stage)}, {figure_title(figure)}: {figure_value(figure)}{more}"
