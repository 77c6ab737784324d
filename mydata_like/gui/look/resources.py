"""Where the icons and translations are that come with the program."""

from functools import cache
from pathlib import Path

import mydata_like


@cache
def find_resources() -> Path:
    """Return the folder of icons and translations.

    Wheels and frozen programs carry it inside the package; in a source checkout, and so in an
    editable installation, it lies beside the package.
    """
    package = Path(mydata_like.__file__).parent
    inside = package / "resources"
    return inside if inside.is_dir() else package.parent / "resources"
