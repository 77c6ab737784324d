"""What the page has done beside the GUI thread; what is heavy is imported only there."""

from collections.abc import Mapping
from pathlib import Path

from mydata_like.gui.speed_test.report import Report, read_reports
from mydata_like.settings.schema import Settings


def load_reports(settings: Settings, config: Path | None) -> list[Report]:
    """Return the speed tests of this installation, the latest first."""
    from mydata_like.app.speedtest_service import load_speed_tests

    return read_reports(load_speed_tests(settings, config))


def restore(config: Path | None, replaced: Mapping[str, object]) -> None:
    """Write again what the person's settings file said before; raises SettingsError."""
    from mydata_like.app.settings_service import save_settings

    save_settings(config, replaced)
