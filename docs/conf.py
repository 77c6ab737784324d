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

from benchmarks.page import make_tables  # noqa: E402 - found by the line above
from tests.events_page import list_codes, list_events  # noqa: E402

# A page, and the mark where the site has what the page in the sources leaves to the program.
MADE = {
    ("events", "<!-- every event -->"): lambda: "".join(list_events()),
    ("events", "<!-- every code -->"): lambda: "".join(list_codes()),
    ("measurements", "<!-- every result -->"): make_tables,
}
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
    app.connect("source-read", _fill)
    app.connect("env-get-outdated", lambda *_: [page for page, _ in MADE])


def _fill(_: Sphinx, page: str, source: list[str]) -> None:
    """Put into a page what is made for it."""
    for (name, mark), make in MADE.items():
        if name == page:
            before, after = source[0].split(mark)
            source[0] = before + make() + after


def _copy_images(app: Sphinx, failure: Exception | None) -> None:
    """Copy the pictures that pages name: Sphinx does not see those of HTML within Markdown."""
    if failure is None:
        text = "".join(page.read_text("utf-8") for page in HERE.rglob("*.md"))
        (app.outdir / "images").mkdir(exist_ok=True)
        for name in set(re.findall(r"images/([\w-]+\.png)", text)):
            shutil.copy(HERE / "images" / name, app.outdir / "images")
