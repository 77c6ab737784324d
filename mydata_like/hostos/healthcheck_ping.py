"""Signals to a dead man's switch, which raises an alarm if no signal arrives."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from mydata_like import __version__
from mydata_like.core.errors import Problem, SettingsError
from mydata_like.settings.atomic_write import write_private
from mydata_like.settings.values import is_loopback

_TIMEOUT: Final = (5.0, 10.0)  # seconds to connect, and to answer
_HEADERS: Final = {"User-Agent": f"mydata-like/{__version__}"}


def write_signal(file: Path, record: Mapping[str, object]) -> Problem | None:
    """Write the result of a run to the signal file; return the problem, if any."""
    try:
        content = json.dumps(dict(record), indent=1).encode()
        write_private(file, content, 0o644)  # the monitor may run as any account
    except SettingsError as error:
        return Problem("monitor.no-signal", f"The signal file cannot be written: {error}.")
    return None


def call_signal(url: str) -> Problem | None:
    """Request an address without sending any data; return the problem, if any.

    Addresses on this computer are requested without a proxy.
    """
    import requests  # slow to import, and few runs need it

    try:
        with requests.Session() as session:
            session.trust_env = not is_loopback(urlsplit(url).hostname or "")
            with session.get(
                url, headers=_HEADERS, timeout=_TIMEOUT, allow_redirects=False, stream=True
            ) as response:
                status = response.status_code
    except (requests.RequestException, ValueError) as error:
        return _signal_failed(type(error).__name__)
    return None if 200 <= status < 300 else _signal_failed(f"it answers with status {status}")


def _signal_failed(why: str) -> Problem:
    # The address is left out: for most such services it is as secret as a password.
    return Problem(
        "monitor.no-signal",
        f"The signal address of monitor.signal_url could not be called: {why}.",
        "Uploads continue. Check the address and the network.",
    )
