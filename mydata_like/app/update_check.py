"""Whether a newer version is available: one request, which tells nothing but this version."""

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from mydata_like import __version__
from mydata_like.core.errors import ServerUnavailableError
from mydata_like.settings.layers import Loaded
from mydata_like.settings.values import is_loopback

if TYPE_CHECKING:
    import requests

_TIMEOUT: Final = (5.0, 10.0)  # seconds to connect, and to answer
_HEADERS: Final = {"User-Agent": f"mydata-like/{__version__}"}
_VERSION: Final = re.compile(rb"v?(\d{1,6}(?:\.\d{1,6}){1,3})\s")
_MOST: Final = 100  # bytes of the answer that are read


def is_allowed(loaded: Loaded) -> bool:
    """Return whether to ask: an address is set, and no administrator manages this computer."""
    managed = loaded.sources.managed
    return bool(loaded.settings.window.update_url) and not (managed and managed.exists())


def fetch_newer(url: str) -> str:
    """Return the version in the first line of a text at an address if it is newer, otherwise "".

    Raises `ServerUnavailableError`.
    """
    import requests  # slow to import, and few starts need it

    try:
        with requests.Session() as session:
            session.trust_env = not is_loopback(urlsplit(url).hostname or "")
            session.auth = _send_no_login  # that of a netrc file neither
            with session.get(
                url, headers=_HEADERS, timeout=_TIMEOUT, allow_redirects=False, stream=True
            ) as response:
                found = _VERSION.match(next(response.iter_content(_MOST), b"") + b"\n")
                status = response.status_code
    except (requests.RequestException, ValueError) as error:
        raise ServerUnavailableError(
            f"The newest version is not known: {type(error).__name__}.",
            hint="Check the address in window.update_url and the network.",
        ) from error
    if status != 200 or not found:
        raise ServerUnavailableError(
            f"The newest version is not known: the answer has status {status} and no version.",
            hint="The address in window.update_url must give a text that begins with a version.",
        )
    newest = found[1].decode()
    return newest if _numbers(newest) > _numbers(__version__) else ""


def _send_no_login(request: "requests.PreparedRequest") -> "requests.PreparedRequest":
    return request


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]
