"""Looks at what was dropped, beside the GUI thread; whoever shows it asks for how far it is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from mydata_like.core.errors import Cancelled
from mydata_like.core.sources import Source
from mydata_like.engine.workers import CancelFlag
from mydata_like.settings.schema import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mydata_like.app.sources import Conflict, SourcePreview


class Survey:
    """A look at some folders and files; `previews` fill while `look` works in a thread."""

    def __init__(self, settings: Settings, config: Path | None, paths: Sequence[bytes]) -> None:
        self.paths = list(dict.fromkeys(os.path.normpath(path) for path in paths))
        self.previews: list[SourcePreview | None] = [None for _ in self.paths]
        self.speed = 0.0  # of the last run, in bytes a second
        self._settings = settings
        self._config = config
        self._cancel = CancelFlag()

    def look(self) -> None:
        """Look at everything; ends early, and quietly, after `stop`. Raises `UploaderError`."""
        from mydata_like.app.sources import find_speed, preview_sources

        self.speed = find_speed(self._settings, self._config)
        row = 0
        looks = preview_sources(self._settings, self._config, self.paths, self._cancel)
        try:
            for preview in looks:
                self.previews[row] = preview
                row += preview.complete
        except Cancelled:
            return

    def find_conflicts(self, sources: Sequence[Source]) -> list[Conflict]:
        """Return what a person should know before these are carried."""
        from mydata_like.app.sources import find_conflicts

        return find_conflicts(self._settings, self._config, sources)

    def stop(self) -> None:
        """Let `look` end; from any thread."""
        self._cancel.set("nobody looks any more")
