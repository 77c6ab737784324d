"""Signals to a dead man's switch: it is told that all is well, and acts when it hears nothing."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from mydata_like import __version__
from mydata_like.core.errors import Problem, SettingsError
from mydata_like.settings.atomic_write import write_private
from mydata_like.settings.values import is_loopback

_PATIENCE: Final = (5.0, 10.0)  # seconds to connect, and to answer
_HEADERS: Final = {"User-Agent": f"mydata-like/{__version__}"}


def write_signal(file: Path, record: Mapping[str, object]) -> Problem | None:
    """Replace the signal's file by what a run brought; return what went wrong."""
    try:
        content = json.dumps(dict(record), indent=1).encode()
        write_private(file, content, 0o644)  # a monitor may be anybody
    except SettingsError as error:
        return Problem("monitor.no-signal", f"The signal file cannot be written: {error}.")
    return None


def call_signal(url: str) -> Problem | None:
    """Call an address; return what went wrong. It hears nothing but the call.

    No proxy hears of a call on this computer.
    """
    import requests  # which no start should wait for, and few runs need

    try:
        with requests.Session() as session:
            session.trust_env = not is_loopback(urlsplit(url).hostname or "")
            with session.get(
                url, headers=_HEADERS, timeout=_PATIENCE, allow_redirects=False, stream=True
            ) as answer:
                status = answer.status_code
    except (requests.RequestException, ValueError) as error:
        return _unheard(type(error).__name__)
    return None if 200 <= status < 300 else _unheard(f"it answers with status {status}")


def _unheard(why: str) -> Problem:
    # The address itself is as good as a password to most such services.
    return Problem(
        "monitor.no-signal",
        f"The signal address of monitor.signal_url could not be called: {why}.",
        "Uploads go on; check the address and the network.",
    )
