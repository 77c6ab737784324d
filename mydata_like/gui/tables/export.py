"""Writes the rows of a table to a file that others can read: CSV, JSON or HTML."""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from html import escape
from io import StringIO
from pathlib import Path

from mydata_like.core.errors import UploaderError
from mydata_like.core.formatting import format_path
from mydata_like.core.queries import Row, View
from mydata_like.gui.tables.columns import Column
from mydata_like.gui.tables.table_query import Open
from mydata_like.settings.atomic_write import PRIVATE_FILE

AT_ONCE = 1000  # rows in memory
FORMULAS = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would take for one
STYLE = """
body { font-family: system-ui, sans-serif; margin: 2em; color-scheme: light dark }
table { border-collapse: collapse } caption { text-align: left; padding: .5em 0 }
th, td { text-align: left; padding: .35em .9em; border-bottom: 1px solid #8886 }
td.number { text-align: right; font-variant-numeric: tabular-nums }
thead th { position: sticky; top: 0; background: Canvas }
"""


def export_rows(
    path: Path, title: str, columns: Sequence[Column], open_listing: Open, view: View
) -> Path:
    """Write all rows of a view; the file's ending says how. Raises `UploaderError`."""
    listing = open_listing(view)
    rows: Iterator[Row] = iter(())
    try:
        if listing is not None:
            count = listing.build()
            pages = (listing.rows(start, AT_ONCE) for start in range(0, count, AT_ONCE))
            rows = (row for page in pages for row in page)
        _write(path, _format(path.suffix.lower(), title, columns, rows))
    finally:
        if listing is not None:
            listing.close()
    return path


def _write(path: Path, pieces: Iterable[str]) -> None:
    """Write the file whole, or leave what was there."""
    part = path.with_name(path.name + ".part")
    try:
        part.unlink(missing_ok=True)
        part.touch(mode=PRIVATE_FILE)
        with part.open("w", encoding="utf-8", newline="") as file:
            file.writelines(pieces)
        part.replace(path)
    except OSError as error:
        raise UploaderError(
            f"The file {path.name} cannot be written: {error.strerror or error}.",
            hint="Choose another folder.",
            code="window.unwritable",
        ) from error
    finally:
        part.unlink(missing_ok=True)


def _format(
    ending: str, title: str, columns: Sequence[Column], rows: Iterable[Row]
) -> Iterator[str]:
    match ending:
        case ".json":
            return _as_json(rows)
        case ".html" | ".htm":
            return _as_html(title, columns, rows)
        case _:
            return _as_csv(columns, rows)


def _as_csv(columns: Sequence[Column], rows: Iterable[Row]) -> Iterator[str]:
    yield "\ufeff"  # by which spreadsheets know UTF-8
    yield _line([column.title for column in columns])
    for row in rows:
        yield _line([column.text(row) for column in columns])


def _line(cells: Iterable[str]) -> str:
    line = StringIO()
    csv.writer(line).writerow(_harmless(cell) for cell in cells)
    return line.getvalue()


def _harmless(cell: str) -> str:
    return f"'{cell}" if cell.startswith(FORMULAS) else cell


def _as_json(rows: Iterable[Row]) -> Iterator[str]:
    yield "["
    for number, row in enumerate(rows):
        yield ",\n" if number else "\n"
        yield json.dumps(row._asdict(), default=_plain, ensure_ascii=False)
    yield "\n]\n"


def _plain(value: object) -> object:
    match value:
        case bytes():
            return format_path(value)
        case datetime():
            return value.isoformat()
        case _:
            return dict(value)  # type: ignore[call-overload]  # a mapping


def _as_html(title: str, columns: Sequence[Column], rows: Iterable[Row]) -> Iterator[str]:
    heads = "".join(f"<th scope='col'>{escape(column.title)}</th>" for column in columns)
    yield f"<!doctype html>\n<meta charset='utf-8'>\n<title>{escape(title)}</title>\n"
    yield f"<style>{STYLE}</style>\n<h1>{escape(title)}</h1>\n"
    yield f"<table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n"
    for row in rows:
        yield f"<tr>{''.join(_cell(column, row) for column in columns)}</tr>\n"
    yield "</tbody>\n</table>\n"


def _cell(column: Column, row: Row) -> str:
    kind = " class='number'" if column.number else ""
    return f"<td{kind}>{escape(column.text(row))}</td>"
