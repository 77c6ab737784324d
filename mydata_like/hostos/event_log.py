"""The Event Log of Windows, in which administrators look for services that failed.

The interface is `ReportEventW` (https://learn.microsoft.com/windows/win32/api/winbase/nf-winbase-reporteventw).
Other systems keep what a service writes to standard error.
"""

import logging
import sys
from typing import Final

logger = logging.getLogger(__name__)

SOURCE: Final = "mydata-like"
EVENT: Final = 1  # the only number of an event; the text says what happened
_LONGEST: Final = 31_000  # characters; the limit of Windows is 31,839

if sys.platform == "win32":
    import ctypes
    from ctypes import wintypes

    _ERROR_TYPE: Final = 1  # EVENTLOG_ERROR_TYPE
    _library: Final = ctypes.WinDLL("advapi32", use_last_error=True)
    _register = _library.RegisterEventSourceW
    _register.restype = wintypes.HANDLE
    _register.argtypes = (wintypes.LPCWSTR, wintypes.LPCWSTR)
    _deregister = _library.DeregisterEventSource
    _deregister.argtypes = (wintypes.HANDLE,)
    _report = _library.ReportEventW
    _report.restype = wintypes.BOOL
    _report.argtypes = (
        wintypes.HANDLE,
        wintypes.WORD,
        wintypes.WORD,
        wintypes.DWORD,
        wintypes.LPVOID,
        wintypes.WORD,
        wintypes.DWORD,
        ctypes.POINTER(wintypes.LPCWSTR),
        wintypes.LPVOID,
    )

    def report_error(text: str) -> bool:
        """Add an error to the log "Application"; return whether that worked."""
        source = _register(None, SOURCE)
        if not source:
            logger.warning("The Event Log cannot be opened: %s", ctypes.get_last_error())
            return False
        texts = (wintypes.LPCWSTR * 1)(text[:_LONGEST])
        done = _report(source, _ERROR_TYPE, 0, EVENT, None, 1, 0, texts, None)
        if not done:
            logger.warning("The Event Log refuses an entry: %s", ctypes.get_last_error())
        _deregister(source)
        return bool(done)

else:

    def report_error(text: str) -> bool:
        """Do nothing, and return false."""
        del text
        return False
