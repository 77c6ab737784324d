"""What each layout means, told by an example."""

from PySide6.QtCore import QCoreApplication

from mydata_like.core.model import Layout

translate = QCoreApplication.translate


def layout_name(layout: Layout) -> str:
    """Return a layout's name in the person's language."""
    names = {
        Layout.USERNAME_DATASET: translate("layouts", "User name / Dataset"),
        Layout.EMAIL_DATASET: translate("layouts", "E-mail address / Dataset"),
        Layout.USERNAME_EXPERIMENT_DATASET: translate(
            "layouts", "User name / Experiment / Dataset"
        ),
        Layout.EMAIL_EXPERIMENT_DATASET: translate(
            "layouts", "E-mail address / Experiment / Dataset"
        ),
        Layout.USERNAME_MYTARDIS_EXPERIMENT_DATASET: translate(
            "layouts", "User name / “MyTardis” / Experiment / Dataset"
        ),
        Layout.GROUP_INSTRUMENT_FULL_NAME_DATASET: translate(
            "layouts", "User group / Instrument / Full name / Dataset"
        ),
        Layout.GROUP_DATASET: translate("layouts", "User group / Dataset"),
        Layout.GROUP_EXPERIMENT_DATASET: translate("layouts", "User group / Experiment / Dataset"),
        Layout.EXPERIMENT_DATASET: translate("layouts", "Experiment / Dataset"),
        Layout.DATASET: translate("layouts", "Dataset"),
    }
    return names[layout]


def layout_example(layout: Layout, instrument: str) -> str:
    """Return a path of one file as the layout wants it."""
    examples = {
        Layout.USERNAME_DATASET: "ada/2026-05-01 liver/image.tif",
        Layout.EMAIL_DATASET: "ada@example.org/2026-05-01 liver/image.tif",
        Layout.USERNAME_EXPERIMENT_DATASET: "ada/Mice 7/2026-05-01 liver/image.tif",
        Layout.EMAIL_EXPERIMENT_DATASET: "ada@example.org/Mice 7/2026-05-01 liver/image.tif",
        Layout.USERNAME_MYTARDIS_EXPERIMENT_DATASET: (
            "ada/MyTardis/Mice 7/2026-05-01 liver/image.tif"
        ),
        Layout.GROUP_INSTRUMENT_FULL_NAME_DATASET: (
            f"Lab A/{instrument or 'Microscope'}/Ada Lovelace/2026-05-01 liver/image.tif"
        ),
        Layout.GROUP_DATASET: "Lab A/2026-05-01 liver/image.tif",
        Layout.GROUP_EXPERIMENT_DATASET: "Lab A/Mice 7/2026-05-01 liver/image.tif",
        Layout.EXPERIMENT_DATASET: "Mice 7/2026-05-01 liver/image.tif",
        Layout.DATASET: "2026-05-01 liver/image.tif",
    }
    return examples[layout]
