"""The files that belong to the program and are no code: icons, translations, documentation."""

from functools import cache
from pathlib import Path

import mydata_like


@cache
def find_resources() -> Path:
    """Return the folder of icons, translations and the documentation's site.

    Wheels and frozen programs have it inside the package. In a source checkout, and so in an
    editable installation, it is next to the package.
    """
    package = Path(mydata_like.__file__).parent
    inside = package / "resources"
    return inside if inside.is_dir() else package.parent / "resources"
