"""A hook of hatchling: the README in the metadata, with links that a package's page can follow."""

import re
from pathlib import Path
from typing import Any, Final

from hatchling.metadata.plugin.interface import MetadataHookInterface

README: Final = Path(__file__).parents[1] / "README.md"
LINK: Final = re.compile(r"""(\]\(|(?:src|srcset|href)=")(?!\w+:|#)([^)"]+)""")


def make_absolute(text: str, repository: str, version: str) -> str:
    """Return Markdown whose relative links lead to a release's files in the repository."""

    def replace(link: re.Match[str]) -> str:
        kind = "blob" if link[1] == "](" else "raw"  # pictures must not be pages
        return f"{link[1]}{repository}/{kind}/v{version}/{link[2]}"

    return LINK.sub(replace, text)


class Hook(MetadataHookInterface):
    """Adds the README of this version."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the description; the version is known by now."""
        text = README.read_text("utf-8")
        text = make_absolute(text, metadata["urls"]["Repository"], metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
