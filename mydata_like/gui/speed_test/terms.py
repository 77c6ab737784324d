"""What speed tests find, in the words of the window."""

from PySide6.QtCore import QCoreApplication, QLocale

from mydata_like.gui.look import words
from mydata_like.gui.speed_test.report import Figure, Forecast

translate = QCoreApplication.translate


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


def rate_of(workload: str, forecast: Forecast, rate: float) -> str:
    """Return bytes a second as a person thinks of such files: tiny ones are counted."""
    if workload != "tiny" or not forecast.rate:
        return words.rate(rate)
    return files_a_second(rate * forecast.files / forecast.rate)


def files_a_second(files: float) -> str:
    """Return a pace of files, as in `4,512 files/s`."""
    digits = 1 if files < 10 else 0
    number = QLocale().toString(files, "f", digits)
    return translate("speed", "%1 files/s").replace("%1", number)


def figure_title(figure: Figure) -> str:
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
        name = words.plain(what.removesuffix(", here"))
        return translate("speed", "%1, on one core here").replace("%1", name)
    return _titles().get(what, words.plain(what))


def _titles() -> dict[str, str]:
    return {
        "large files": translate("speed", "Large files"),
        "tiny files": translate("speed", "Tiny files"),
        "MD5, one core": translate("speed", "MD5 on one core"),
        "MD5, all cores": translate("speed", "MD5 on all cores"),
        "round trip": translate("speed", "Round trip"),
        "connection set-up": translate("speed", "Connection set-up"),
        "window over round trip, each channel": translate("speed", "Most that one channel carries"),
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


def figure_value(figure: Figure) -> str:
    """Return the median as a person reads it."""
    return _value(figure.median, figure.unit)


def figure_spread(figure: Figure) -> str:
    """Return both ends of what was measured, where they lie wide apart."""
    if figure.highest - figure.lowest <= 0.25 * figure.median:
        return ""
    ends = (_value(end, figure.unit) for end in (figure.lowest, figure.highest))
    return translate("speed", "%1 to %2").replace("%1", next(ends)).replace("%2", next(ends))


def _value(number: float, unit: str) -> str:
    match unit:
        case "bytes/s":
            return words.rate(number)
        case "files/s":
            return files_a_second(number)
        case "seconds":
            digits = QLocale().toString(number * 1000, "f", 1)
            return translate("speed", "%1 ms").replace("%1", digits)
        case "share":
            return translate("speed", "%1 %").replace("%1", words.count(round(number * 100)))
        case _:
            digits = words.count(round(number))
            return translate("speed", "%1 requests/s").replace("%1", digits)
