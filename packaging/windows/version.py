"""Write the version information that Windows shows for the program: python version.py FILE."""

import re
import sys
from pathlib import Path

from mydata_like import __version__

RESOURCE = """\
VSVersionInfo(
  ffi=FixedFileInfo(filevers={numbers}, prodvers={numbers}),
  kids=[
    StringFileInfo([
      StringTable('040904B0', [
        StringStruct('CompanyName', 'The mydata-like developers'),
        StringStruct('FileDescription', 'mydata-like'),
        StringStruct('FileVersion', '{version}'),
        StringStruct('InternalName', 'mydata-like'),
        StringStruct('LegalCopyright', 'Apache License 2.0'),
        StringStruct('ProductName', 'mydata-like'),
        StringStruct('ProductVersion', '{version}'),
      ])
    ]),
    VarFileInfo([VarStruct('Translation', [1033, 1200])]),
  ],
)
"""


def build_resource(version: str) -> str:
    """Return the version resource; Windows requires four numbers."""
    numbers = [int(number) for number in re.findall(r"\d+", version)][:4]
    numbers += [0] * (4 - len(numbers))
    return RESOURCE.format(numbers=tuple(numbers), version=version)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(build_resource(__version__), encoding="utf-8")
