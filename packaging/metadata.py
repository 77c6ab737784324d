"""A hook of hatchling: README and addresses in the metadata, which a package's page can follow."""

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
    """Adds the README and the addresses of this version."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the description and the addresses; the version is known by now."""
        repository, version = metadata["urls"]["Repository"], metadata["version"]
        metadata["urls"] |= {
            "Documentation": f"{repository}/blob/v{version}/docs/index.md",
            "Changelog": f"{repository}/blob/v{version}/CHANGELOG.md",
            "Issues": f"{repository}/issues",
        }
        text = make_absolute(README.read_text("utf-8"), repository, version)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
