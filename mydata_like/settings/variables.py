"""Settings in the environment: what each variable is called, and which are mistyped."""

from collections.abc import Iterable, Mapping
from typing import Final

from mydata_like.settings.problems import find_nearest
from mydata_like.settings.schema import settings_by_key

PREFIX: Final = "MYDATA_LIKE_"


def variable_of(key: str) -> str:
    """Return the name of the environment variable that sets a key."""
    return f"{PREFIX}{key.replace('.', '_').upper()}"


def warn_of_variables(environment: Mapping[str, str]) -> Iterable[str]:
    """Yield a warning for each variable that looks like a mistyped setting."""
    known = {variable_of(key): key for key in settings_by_key()}
    own = {f"{PREFIX}API_KEY", f"{PREFIX}HOME"}
    for variable in sorted(environment.keys() - known.keys() - own):
        nearest = find_nearest(variable, known) if variable.startswith(PREFIX) else None
        if nearest:
            yield f"{variable} sets nothing; did you mean {nearest}?"
