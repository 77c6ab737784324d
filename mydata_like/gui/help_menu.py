"""The Help menu: keyboard shortcuts and the About dialog."""

import html
from collections.abc import Iterable, Sequence
from typing import Final

from PySide6.QtCore import Slot
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import QDialogButtonBox, QLabel, QTabWidget, QTextBrowser, QWidget

from mydata_like import __version__
from mydata_like.core.resources import find_resources
from mydata_like.gui.tasks import Tasks
from mydata_like.gui.theme.layouts import Dialog, hbox, vbox
from mydata_like.gui.theme.metrics import TITLE
from mydata_like.gui.theme.widgets import PlainLabel, app_icon, push_button
from mydata_like.hostos.dependencies import PROGRAM, Component, describe_versions, list_components

CHANGES: Final = "CHANGELOG.md"


class HelpDialog(Dialog):
    """How to begin, what is new, the keyboard shortcuts, and versions with licences."""

    def __init__(self, tasks: Tasks, actions: list[QAction], parent: QWidget | None = None) -> None:
        super().__init__(self.tr("Help"), parent, 90, 39)
        first = self._make_text(self.tr("Getting started"))
        first.setMarkdown(self._describe_start())
        news = self._make_text(self.tr("What is new"))
        news.setMarkdown(read_changes())
        keys = self._make_text(self.tr("Keys"))
        keys.setHtml(_tabulate(dict.fromkeys(_list_keys(actions))))  # each once
        self._versions = self._make_text(self.tr("Versions"))
        self._licences = self._make_text(self.tr("Licences"))
        tabs = QTabWidget(self)
        tabs.addTab(first, self.tr("&Getting started"))
        tabs.addTab(news, self.tr("What is &new"))
        tabs.addTab(keys, self.tr("&Keys"))
        tabs.addTab(self._make_about(), self.tr("&About"))
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close, self)
        buttons.rejected.connect(self.reject)
        vbox(tabs, buttons, inside=self)
        tasks.run(describe_versions, self._show_versions)
        tasks.run(list_components, self._show_components)

    def _describe_start(self) -> str:
        """Return the first steps, as Markdown."""
        steps = (
            self.tr(
                "**Set up** once: where the data goes, and the data folder. The first start opens "
                "the set-up; later, it is in the settings."
            ),
            self.tr(
                "**Start** sends what the server lacks. Or let it happen: *Settings*, *Schedule* "
                "has fixed times, and *with new files*."
            ),
            self.tr(
                "**Drop** folders or files on the window to upload what is elsewhere; choose what "
                "they become there."
            ),
            self.tr(
                "**Verified** means that the server has read the file and its checksum is right. "
                "Until then it counts as *only on this computer*."
            ),
            self.tr(
                "**May I delete it?** *Where is my data?* answers for a file or a folder, with the "
                "reasons, and can free the space."
            ),
            self.tr(
                "**Problems** says what happened to a file, who can fix it, and what to do. "
                "Nothing is lost meanwhile, and a later run continues."
            ),
            self.tr(
                "**Too slow?** The *speed test* finds out what the limit is, and which settings "
                "help."
            ),
        )
        return "\n".join(f"{number}. {step}" for number, step in enumerate(steps, start=1))

    def _make_about(self) -> QWidget:
        page = QWidget(self)
        picture = QLabel(page)
        side = self.fontMetrics().height() * 3
        picture.setPixmap(app_icon().pixmap(side, side))
        name = PlainLabel(f"{PROGRAM} {__version__}", page, heading=TITLE)
        purpose = self.tr("Uploads research data and verifies that every byte arrived.")
        self._copy = push_button(page, self.tr("&Copy"), self._copy_versions, "copy")
        self._copy.setToolTip(self.tr("Copy the versions as text, for a report"))
        self._copy.setAutoDefault(False)
        self._copy.setEnabled(False)
        vbox(
            hbox(picture, (name, 1)),
            PlainLabel(purpose, page, wrap=True),
            hbox((PlainLabel(self.tr("What security depends on:"), page), 1), self._copy),
            (self._versions, 3),
            PlainLabel(self.tr("It is built on:"), page),
            (self._licences, 2),
            inside=page,
        )
        QWidget.setTabOrder(self._copy, self._versions)
        QWidget.setTabOrder(self._versions, self._licences)
        return page

    def _show_versions(self, text: str) -> None:
        self._versions.setPlainText(text.strip())
        self._copy.setEnabled(True)

    @Slot()
    def _copy_versions(self) -> None:
        QGuiApplication.clipboard().setText(self._versions.toPlainText() + "\n")

    def _show_components(self, components: Sequence[Component]) -> None:
        """Show the installed components with their versions and licences."""
        rows = ((f"{one.name} {one.version}", one.licence) for one in components)
        self._licences.setHtml(_tabulate(rows))

    def _make_text(self, name: str) -> QTextBrowser:
        """Return a read-only text view whose table can be copied."""
        text = QTextBrowser(self)
        text.setAccessibleName(name)
        text.setTabChangesFocus(True)
        return text


def read_changes() -> str:
    """Return the changes of the versions, as Markdown; empty if this installation lacks them."""
    packed = find_resources() / "docs" / CHANGES
    try:
        path = packed if packed.exists() else find_resources().parent / CHANGES
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def _tabulate(rows: Iterable[tuple[str, str]]) -> str:
    cells = "".join(
        f"<tr><td style='padding-right: 2em'>{html.escape(left)}</td>"
        f"<td>{html.escape(right)}</td></tr>"
        for left, right in rows
    )
    return f"<table cellpadding='3'>{cells}</table>"


def _list_keys(actions: list[QAction]) -> Iterable[tuple[str, str]]:
    for action in actions:
        keys = action.shortcut().toString(action.shortcut().SequenceFormat.NativeText)
        if keys:
            yield action.text().replace("&", "").rstrip("…"), keys
