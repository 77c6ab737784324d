"""What a speed test looks at."""

from dataclasses import dataclass
from pathlib import Path

from mydata_like.doctor.api import Questions
from mydata_like.doctor.staging import Staging
from mydata_like.settings.transfer_sections import Transfer


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is examined: the data's folder, the server's API, and the way into its staging area.

    Without a `staging`, `why` says what is in its way. `state` takes the test's own files.
    `records` are how many files a second earlier runs brought to the server where its API was
    their limit.
    """

    root: Path
    state: Path
    transfer: Transfer
    questions: Questions
    staging: Staging | None = None
    why: str = ""
    records: tuple[float, ...] = ()
