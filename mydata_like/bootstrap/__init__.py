"""The composition root: settings in, working parts out."""

from mydata_like.bootstrap.job import Audience, Job, Order, open_job
from mydata_like.bootstrap.registration import (
    Admission,
    HostKey,
    register,
    trust_host,
    trust_host_keys,
)
from mydata_like.bootstrap.settings import (
    HOME,
    find_api_key,
    find_places,
    load_settings,
    open_secrets,
    save_settings,
    store_api_key,
)
from mydata_like.bootstrap.state import State, look_at_state
from mydata_like.bootstrap.surroundings import open_log
from mydata_like.store.ledger import PastRun
from mydata_like.system.clock import SystemClock

__all__ = [
    "HOME",
    "Admission",
    "Audience",
    "HostKey",
    "Job",
    "Order",
    "PastRun",
    "State",
    "SystemClock",
    "find_api_key",
    "find_places",
    "load_settings",
    "look_at_state",
    "open_job",
    "open_log",
    "open_secrets",
    "register",
    "save_settings",
    "store_api_key",
    "trust_host",
    "trust_host_keys",
]
