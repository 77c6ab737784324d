"""What the drop sheet asks about dropped files; what that needs is imported in the background."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from mydata_like.app.source_service import Conflict, SourcePreview
    from mydata_like.core.extra_sources import ExtraSource
    from mydata_like.core.ports import CancelSignal
    from mydata_like.settings.schema import Settings


def scan_sources(
    settings: Settings,
    config: Path | None,
    paths: Sequence[bytes],
    report: Callable[[tuple[int, SourcePreview]], None],
    cancel: CancelSignal,
) -> None:
    """Report what is known of each path, by its place in `paths`; raises `UploaderError`."""
    from mydata_like.app.source_service import preview_sources

    row = 0
    for preview in preview_sources(settings, config, paths, cancel):
        report((row, preview))
        row += preview.complete


def find_speed(settings: Settings, config: Path | None) -> float:
    """Return the speed of the last run, in bytes a second; 0 if there is none."""
    from mydata_like.app.source_service import find_speed as find

    return find(settings, config)


def find_conflicts(
    settings: Settings, config: Path | None, sources: Sequence[ExtraSource]
) -> list[Conflict]:
    """Return what the user should know before these are uploaded."""
    from mydata_like.app.source_service import find_conflicts as find

    return find(settings, config, sources)
