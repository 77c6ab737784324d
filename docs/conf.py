"""How Sphinx makes the documentation's site: `make docs`."""

import re
import shutil
import sys
import tomllib
from pathlib import Path

from sphinx.application import Sphinx

from mydata_like import __version__

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))

from tests.events_page import build_reference  # noqa: E402 - found by the line above

PROJECT = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]

project = PROJECT["name"]
release = version = __version__
project_copyright = PROJECT["authors"][0]["name"]

extensions = ["myst_parser"]
myst_heading_anchors = 4
exclude_patterns = ["_build", "changes/*"]
nitpicky = True

html_theme = "furo"
html_title = f"{project} {release}"
html_favicon = "../resources/icons/app.svg"
html_copy_source = False
html_show_sphinx = False


def setup(app: Sphinx) -> None:
    """Say what Sphinx is to do besides."""
    app.connect("build-finished", _copy_images)
    app.connect("source-read", _add_meanings)


def _add_meanings(_: Sphinx, page: str, source: list[str]) -> None:
    """Give each problem code its meaning, which the page in the sources leaves to the program."""
    if page == "events":
        source[0] = build_reference(source[0], meanings=True)


def _copy_images(app: Sphinx, failure: Exception | None) -> None:
    """Copy the pictures that pages name: Sphinx does not see those of HTML within Markdown."""
    if failure is None:
        text = "".join(page.read_text("utf-8") for page in HERE.rglob("*.md"))
        (app.outdir / "images").mkdir(exist_ok=True)
        for name in set(re.findall(r"images/([\w-]+\.png)", text)):
            shutil.copy(HERE / "images" / name, app.outdir / "images")
