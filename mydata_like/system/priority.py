"""Lets other programs go first; what this process starts later does the same."""

import logging
import os
import sys
from typing import Final

import psutil

logger = logging.getLogger(__name__)

NICENESS: Final = 10  # a tenth of the processor's time where somebody else wants all of it


def lower_priority() -> None:
    """Give this process a low priority for processor and disk, for good.

    Must be called before threads are started: on Linux both belong to the thread. A system
    that forbids it is let be.
    """
    try:
        if sys.platform == "win32":
            _lower_on_windows()
        else:
            _lower_on_unix()
    except (OSError, psutil.Error) as error:
        logger.debug("The priority stays as it is: %s", error)


if sys.platform == "win32":

    def _lower_on_windows() -> None:
        # Windows' background mode would also cap the working set at 32 MiB.
        process = psutil.Process()
        process.nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)
        process.ionice(psutil.IOPRIO_LOW)

else:

    def _lower_on_unix() -> None:
        current = os.getpriority(os.PRIO_PROCESS, 0)
        os.setpriority(os.PRIO_PROCESS, 0, max(current, NICENESS))
        if sys.platform == "linux":
            process = psutil.Process()
            if process.ionice().ioclass != psutil.IOPRIO_CLASS_IDLE:
                process.ionice(psutil.IOPRIO_CLASS_BE, 7)
