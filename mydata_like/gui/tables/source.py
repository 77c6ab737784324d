"""Opens the ledger for tables; what that needs is imported in the thread that does it."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mydata_like.core.queries import FolderGroup, ProblemGroup, View
from mydata_like.gui.controller import Controller
from mydata_like.gui.tables.table_query import Listing, Open
from mydata_like.gui.tables.tree import Parents
from mydata_like.settings.schema import Settings

if TYPE_CHECKING:
    from mydata_like.app.row_queries import LedgerSummary


def opener(controller: Controller) -> Open:
    """Return what opens the ledger of the settings as they are now."""
    return partial(open_listing, controller.settings, controller.config)


def open_listing(settings: Settings, config: Path | None, view: View) -> Listing | None:
    """Open the rows of a view; raises as `app.reading.open_listing`."""
    from mydata_like.app import row_queries

    return row_queries.open_listing(settings, config, view)


def group_problems(settings: Settings, config: Path | None) -> list[ProblemGroup]:
    """Return what is not well, by kind and code; raises `UploaderError`."""
    from mydata_like.app import row_queries

    survey = row_queries.open_survey(settings, config)
    return survey.group_problems() if survey else []


def list_levels(
    settings: Settings, config: Path | None, wanted: Sequence[Parents]
) -> dict[Parents, list[FolderGroup]]:
    """Return what is below each of these lines of the tree; raises `UploaderError`."""
    from mydata_like.app import row_queries

    survey = row_queries.open_survey(settings, config)
    return {parents: _list_level(survey, parents) if survey else [] for parents in wanted}


def _list_level(survey: "LedgerSummary", parents: Parents) -> list[FolderGroup]:
    if parents.folder is not None:
        return survey.list_inside(parents.folder)
    return survey.list_folders(*parents.names)


def find_dataset(settings: Settings, config: Path | None, folder: bytes) -> int | None:
    """Return the server's number of a folder's dataset; raises `UploaderError`."""
    from mydata_like.app import row_queries

    survey = row_queries.open_survey(settings, config)
    return survey.find_dataset(folder) if survey else None
