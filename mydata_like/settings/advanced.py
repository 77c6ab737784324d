"""Settings that hardly anybody has to change."""

from typing import Annotated, Literal

from mydata_like.settings.about import About
from mydata_like.settings.reading import Between
from mydata_like.settings.section import Section
from mydata_like.settings.values import OptionalPath


class Advanced(Section):
    """What hardly anybody has to change."""

    state_directory: Annotated[
        OptionalPath,
        About(
            "State directory",
            "The folder for the ledger and other state; empty takes the system's usual place.",
        ),
    ] = None
    log_level: Annotated[
        Literal["DEBUG", "INFO", "WARNING", "ERROR"],
        About("Log level", "How much the log says; DEBUG helps to find a fault."),
    ] = "INFO"
    register_batch: Annotated[
        int,
        Between(1, 500),
        About("Records in a request", "How many records are made in one request at first."),
    ] = 25
    register_requests: Annotated[
        int,
        Between(1, 16),
        About("Parallel registrations", "How many requests that make records run at once."),
    ] = 3
    verify_interval: Annotated[
        float,
        Between(0.01, 3600),
        About(
            "Verification interval",
            "How long to wait at first before asking whether the server has verified files.",
            legacy=("verification_delay",),
            unit="s",
        ),
    ] = 1.0
    verify_patience: Annotated[
        float,
        Between(0, 7 * 86_400),
        About(
            "Verification patience",
            "How long a run waits for the server's verification; "
            "the next run asks again for what is left.",
            unit="s",
        ),
    ] = 900.0
    pause_patience: Annotated[
        float,
        Between(0, 7 * 86_400),
        About(
            "Pause patience",
            "How long a run waits while the server is away or the staging area is full, "
            "before it ends.",
            unit="s",
        ),
    ] = 600.0
    full_check_days: Annotated[
        float,
        Between(0, 366),
        About(
            "Full check",
            "After how many days each datafile of the server is compared again with what is known "
            "of it here; 0 does so in every run. In between, one question for each dataset shows "
            "that none has gone.",
            unit="days",
        ),
    ] = 7.0
