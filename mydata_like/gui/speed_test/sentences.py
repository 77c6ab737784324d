"""What a speed test says, in sentences of the window's language."""

from collections.abc import Collection, Mapping

from PySide6.QtCore import QCoreApplication

from mydata_like.gui.look import words
from mydata_like.gui.speed_test.interpreting import interpret
from mydata_like.gui.speed_test.report import STAGES, Advice, Figure, Gain, Report
from mydata_like.gui.speed_test.terms import (
    figure_spread,
    figure_title,
    figure_value,
    rate_of,
    stage_phrase,
    stage_title,
    workload_title,
)

translate = QCoreApplication.translate

_MUCH = 0.25  # of this computer


def limit_sentence(report: Report) -> str:
    """Return the one plain sentence: the limit for large files and for tiny ones."""
    large, tiny = _name_limit(report, "large"), _name_limit(report, "tiny")
    if large and not tiny and report.reached:
        text = translate(
            "speed", "The limit is %1 for large files. What it is for tiny ones cannot be told."
        )
        return text.replace("%1", large)
    if not large or not tiny:
        return translate("speed", "Nothing could be measured that says how fast files would go.")
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


def _name_limit(report: Report, workload: str) -> str:
    forecast = report.forecasts.get(workload)
    if forecast is None or not forecast.limit:
        return ""
    text = translate("speed", "%1 at %2", "a limit at its speed")
    text = text.replace("%1", _name_stage(report, forecast.limit, workload))
    return text.replace("%2", rate_of(workload, forecast, forecast.rate))


def _name_stage(report: Report, stage: str, workload: str) -> str:
    """Return what a stage is called within a sentence about a test."""
    if stage == "network" and report.without_shell:
        return translate("speed", "the network or the disk of the server")
    small_batches = any(one.code == "batches" for one in report.advice)
    if stage == "channels" and small_batches and workload != "large":
        return translate(
            "speed", "the number of channels over this distance or the size of batches"
        )
    return stage_phrase(stage, one_machine=report.one_machine)


def behind_sentence(report: Report, workload: str) -> str:
    """Return what would be the next limit for such files; empty where there is none."""
    forecast = report.forecasts.get(workload)
    if forecast is None or not forecast.behind:
        return ""
    text = translate("speed", "Behind it comes %1, which alone would carry %2.")
    text = text.replace("%1", _name_stage(report, forecast.behind, workload))
    return text.replace("%2", rate_of(workload, forecast, forecast.rates[forecast.behind]))


def advice_lines(report: Report, locks: Mapping[str, str]) -> list[str]:
    """Return what would be faster and by how much; what is locked says by whom."""
    return [_tell_advice(report, each, locks) for each in report.advice]


def _tell_advice(report: Report, advice: Advice, locks: Mapping[str, str]) -> str:
    gain = translate("speed", "%1: %2 times as fast")
    gain = gain.replace("%1", workload_title(advice.workload))
    gain = gain.replace("%2", words.decimal(round(advice.gain, 1)))
    text = f"{_name_advice(report, advice)} ({gain})"
    holders = {locks[key] for key in advice.changes if key in locks}
    if not holders:
        return text
    locked = translate("speed", "Locked by %1.").replace("%1", words.plain(", ".join(holders)))
    return f"{text} {locked}"


def _name_advice(report: Report, advice: Advice) -> str:
    shrunk = report.find("compressed size")
    size = figure_value(shrunk) if shrunk else "?"
    ciphers = advice.changes.get("transfer.ciphers")
    first = words.plain(str(ciphers[0])) if isinstance(ciphers, list) and ciphers else "?"
    offer = translate("speed", "Offer the cipher %1 first.")
    compress = translate("speed", "Compress on the way: your data shrink to %1.")
    return {
        "cipher": offer.replace("%1", first),
        "channels": translate("speed", "Let the program find the number of channels."),
        "batches": translate("speed", "Let more tiny files travel together, as by default."),
        "compression": compress.replace("%1", size),
        "archives": translate(
            "speed", "Keep tiny files in archives, which have one record each (archive.rules)."
        ),
        "relief": _name_relief(report, advice),
    }.get(advice.code, words.plain(advice.text))


def _name_relief(report: Report, advice: Advice) -> str:
    """Return what somebody else could do about the limit, and what comes next."""
    forecast = report.forecasts[advice.workload]
    faster = translate("speed", "More or faster processors in this computer would help.")
    relief = {
        "source": translate(
            "speed", "A faster disk for the data, or less that others do on it, would help."
        ),
        "hash": faster,
        "cipher": faster,
        "network": translate(
            "speed", "A faster network between here and the staging host would help."
        ),
        "channels": translate(
            "speed", "A nearer staging host would help, or one with larger SSH windows."
        ),
        "server cpu": translate(
            "speed", "More cores for the staging host, or several hosts, would help."
        ),
        "server disk": translate("speed", "Faster storage behind the staging host would help."),
        "API": translate("speed", "More workers for the server's web application would help."),
    }.get(forecast.limit, words.plain(advice.text))
    if not forecast.behind:
        return relief
    following = translate("speed", "After that the limit is %1.")
    following = following.replace("%1", _name_stage(report, forecast.behind, advice.workload))
    return f"{relief} {following}"


def gain_lines(gains: Collection[Gain]) -> list[str]:
    """Return what was measured before and after settings were changed."""
    return [_tell_gain(gain) for gain in gains]


def _tell_gain(gain: Gain) -> str:
    if gain.before is None:
        text = translate("speed", "%1: %2 now")
    else:
        text = translate("speed", "%1: %3 before, %2 now")
        text = text.replace("%3", figure_value(gain.before))
    text = text.replace("%1", figure_title(gain.after))
    return text.replace("%2", figure_value(gain.after))


def unknown_lines(report: Report) -> list[str]:
    """Return what could not be measured, or not well, and why."""
    lines = [interpret(sentence) for sentence in report.unknown]
    if report.busy <= _MUCH:
        return lines
    text = translate("speed", "Other programs took %1 % of this computer: it may be faster alone.")
    return [text.replace("%1", words.count(round(report.busy * 100))), *lines]


def report_name(report: Report) -> str:
    """Return when a test was made, and whether it was a short one."""
    at = words.moment(report.at)
    return translate("speed", "%1, quick").replace("%1", at) if report.quick else at


def report_text(report: Report) -> str:
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


def stage_lines(report: Report, workload: str) -> list[str]:
    """Return how fast each stage would be alone, a line each; the limit is marked."""
    forecast = report.forecasts[workload]
    lines = []
    for stage in STAGES:
        if stage in forecast.rates:
            rate = rate_of(workload, forecast, forecast.rates[stage])
            mark = translate("speed", " (the limit)") if stage == forecast.limit else ""
            lines.append(f"{stage_title(stage)}: {rate}{mark}")
    return lines


def _tell_figure(figure: Figure) -> str:
    spread = figure_spread(figure)
    more = f" ({spread})" if spread else ""
    return f"{stage_title(figure.stage)}, {figure_title(figure)}: {figure_value(figure)}{more}"
