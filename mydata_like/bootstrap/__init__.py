"""The composition root: settings in, working parts out."""

from mydata_like.bootstrap.settings import (
    HOME,
    find_api_key,
    find_places,
    load_settings,
    open_secrets,
    save_settings,
    store_api_key,
)

__all__ = [
    "HOME",
    "find_api_key",
    "find_places",
    "load_settings",
    "open_secrets",
    "save_settings",
    "store_api_key",
]
