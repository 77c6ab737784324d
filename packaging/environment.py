"""What a bundle does first: it gives other programs the environment that it was given itself.

The bundle's loader has Linux look for libraries in the bundle first. Programs that we start, like
the system's ssh or a file manager, must find their own.
"""

import os

for _name in ("LD_LIBRARY_PATH", "LIBPATH"):
    if _name in os.environ:
        del os.environ[_name]
    if (_given := os.environ.pop(f"{_name}_ORIG", None)) is not None:
        os.environ[_name] = _given
