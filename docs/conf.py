"""How Sphinx makes the documentation's site: `make docs`."""

import shutil
import tomllib
from pathlib import Path

from sphinx.application import Sphinx

HERE = Path(__file__).parent
PROJECT = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]

project = PROJECT["name"]
release = version = PROJECT["version"]
project_copyright = PROJECT["authors"][0]["name"]

extensions = ["myst_parser"]
myst_heading_anchors = 4
exclude_patterns = ["_build"]
nitpicky = True

html_theme = "furo"
html_title = f"{project} {release}"
html_favicon = "../resources/icons/app.svg"
html_copy_source = False
html_show_sphinx = False


def setup(app: Sphinx) -> None:
    """Say what Sphinx is to do besides."""
    app.connect("build-finished", _copy_images)


def _copy_images(app: Sphinx, failure: Exception | None) -> None:
    """Copy the pictures: Sphinx does not see those that have a light and a dark version."""
    if failure is None:
        shutil.copytree(HERE / "images", app.outdir / "images", dirs_exist_ok=True)
