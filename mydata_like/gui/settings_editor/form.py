"""Rows of the settings dialog: label, field, origin, errors and hints."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain

from PySide6.QtCore import QCoreApplication, QEvent, Qt, Signal, Slot
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QPushButton, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from mydata_like.core.model import Layout
from mydata_like.gui import setting_labels
from mydata_like.gui.setting_labels import Tab
from mydata_like.gui.settings_editor.editors import make_editor
from mydata_like.gui.theme import colours, texts
from mydata_like.gui.theme.colours import Status
from mydata_like.gui.theme.layouts import frameless, hbox, vbox
from mydata_like.gui.theme.metrics import SECTION, SMALL
from mydata_like.gui.theme.widgets import FoldButton, IconLabel, PlainLabel, icon
from mydata_like.settings.fields import Setting
from mydata_like.settings.layers import Layer
from mydata_like.settings.pending_changes import PendingChanges
from mydata_like.settings.schema import iter_settings, settings_by_key

translate = QCoreApplication.translate


class HintLabel(PlainLabel):
    """Wrapped text in the colour of explanations or of a status, in every theme."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent, wrap=True)
        self._status: Status | None = None
        self._paint()

    def tint(self, status: Status | None) -> None:
        """Take the colour of a status, or none."""
        self._status = status
        self._paint()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange:
            self._paint()

    def _paint(self) -> None:
        colour = colours.status_colour(self._status) if self._status else colours.quiet()
        palette = QPalette(self.palette())
        if palette.color(QPalette.ColorRole.WindowText) != colour:
            palette.setColor(QPalette.ColorRole.WindowText, colour)
            self.setPalette(palette)


class StatusIcon(QWidget):
    """An icon and a sentence, by default in small type."""

    def __init__(self, parent: QWidget, scale: float = SMALL) -> None:
        super().__init__(parent)
        self._picture = IconLabel(parent=self)
        self._text = HintLabel("", self)
        self._text.scale(scale)
        frameless(hbox((self._picture, Qt.AlignmentFlag.AlignTop), (self._text, 1), inside=self))
        self.show_text("")

    @property
    def text(self) -> str:
        """The text."""
        return self._text.text()

    def show_text(self, text: str, name: str = "", status: Status | None = None) -> None:
        """Show a sentence with the icon and colour of a status, or nothing."""
        self.setVisible(bool(text))
        self._text.setText(text)
        self._text.tint(status)
        self._picture.setVisible(bool(name))
        if name:
            self._picture.show_icon(icon(name, status))


class FormRow(QWidget):
    """A label and an explanation to the left, and a column with the field to the right."""

    def __init__(self, title: str, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.searched = f"{title} {text}"
        self.label = PlainLabel(title.replace("&", "&&"), self, wrap=True)
        self.help = HintLabel(text, self)
        self.help.scale(SMALL)
        gap = self.fontMetrics().averageCharWidth()
        left, self.column = vbox(self.label, self.help, 1), vbox()
        left.setSpacing(gap // 4)
        self.column.setSpacing(gap // 4)
        line = hbox((left, 1), (self.column, 1), inside=self)
        line.setContentsMargins(0, gap // 2, 0, gap // 2)
        line.setSpacing(gap * 3)
        self.source = StatusIcon(self)
        self.problem = StatusIcon(self)

    def make_reset(self, title: str) -> QToolButton:
        """Return the button that takes a change back; in the tab order it follows the field."""
        reset = QToolButton(self)
        reset.setText(translate("SettingRow", "Reset"))
        reset.setAutoRaise(True)
        reset.setAccessibleName(translate("SettingRow", "Reset: %1").replace("%1", title))
        return reset

    def matches(self, sought: str) -> bool:
        """Return whether its texts contain all words of a search."""
        searched = self.searched.casefold()
        return all(word in searched for word in sought.casefold().split())


class InlineMessage(QWidget):
    """Shows one message at a time; it takes no space while empty."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._sign = StatusIcon(self)
        self._button = QPushButton(self)
        self._act: Callable[[], object] | None = None
        frameless(hbox((self._sign, 1), self._button, inside=self))
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self._button.clicked.connect(self.act)
        self.clear()

    @property
    def text(self) -> str:
        """The text."""
        return self._sign.text

    def show_text(self, text: str, name: str = "info", status: Status | None = None) -> None:
        """Show a message with the icon of this name, in the colour of a status."""
        self._sign.show_text(text, name, status)
        self._button.hide()
        self.show()

    def offer(self, text: str, words: str, act: Callable[[], object]) -> None:
        """Show a message with a button."""
        self.show_text(text)
        self._act = act
        self._button.setText(words)
        self._button.show()

    def clear(self) -> None:
        """Show nothing."""
        self.hide()

    @Slot()
    def act(self) -> None:
        """Execute the action of the button."""
        self.clear()
        if self._act is not None:
            self._act()


CHANGED_MARK = "●"


class SettingRow(FormRow):
    """Shows one setting of a draft, and signals when the user changes it."""

    edited = Signal(object)  # the row itself
    reset_wanted = Signal(object)  # the row itself

    def __init__(self, setting: Setting, parent: QWidget | None = None) -> None:
        label, explanation = setting_labels.label_of(setting), setting_labels.help_of(setting)
        super().__init__(label, explanation, parent)
        self.setting = setting
        choices = [setting_labels.name_choice(setting, choice) for choice in setting.choices]
        about = setting.about
        self.searched += " ".join(("", setting.key, about.label, *choices, *about.legacy))
        self.editor = make_editor(setting, self)
        self.label.setBuddy(self.editor.field)
        self.reset = self.make_reset(label)
        keep = self.reset.sizePolicy()
        keep.setRetainSizeWhenHidden(True)
        self.reset.setSizePolicy(keep)
        self.column.addWidget(self.editor)
        self.column.addLayout(hbox((self.source, 1), self.reset))
        self.column.addWidget(self.problem)
        self.column.addStretch(1)

        self.editor.edited.connect(self._emit_edited)
        self.reset.clicked.connect(self._want_reset)

    @property
    def key(self) -> str:
        """The dotted key of the setting."""
        return self.setting.key

    def show_draft(self, draft: PendingChanges) -> None:
        """Show the value and all texts about it."""
        self.editor.show_value(draft.value(self.key))
        self.show_facts(draft)

    def show_facts(self, draft: PendingChanges) -> None:
        """Show the status of the value, which the user may be editing."""
        fixed_by = draft.fixed_by(self.key)
        self.editor.set_fixed(fixed=bool(fixed_by))
        # An invalid value prevents saving, so it can be corrected even if it is not used.
        self.setEnabled(not describe_unused(self.key, draft) or self.key in draft.problems)
        self.reset.setVisible(draft.is_own(self.key))
        self.source.show_text(*self._describe(draft, fixed_by))
        problem = draft.problems.get(self.key, "")
        if problem:
            label = setting_labels.label_of(self.setting)
            said = f"{label}: {texts.with_labels(texts.engine_text(problem))}"
            self.problem.show_text(said, "problems", "problem")
        elif self.key in draft.missing:
            self.problem.show_text(self.tr("Needed before a run can start"), "waiting", "waiting")
        else:
            self.problem.show_text("")

    def _describe(self, draft: PendingChanges, fixed_by: str) -> tuple[str, str, Status | None]:
        """Return the source of the value, with its icon and status."""
        winner = draft.winner(self.key)
        if fixed_by:
            return setting_labels.name_lock(winner, fixed_by), "padlock", None
        if not draft.is_changed(self.key):
            unused = describe_unused(self.key, draft)
            return unused or setting_labels.name_source(winner), "", None
        if draft.is_own(self.key):
            said = self.tr("Changed")
        elif winner.source is Layer.DEFAULT:
            said = self.tr("Changed: reset to the default")
        else:
            said = self.tr("Changed: reset to %1")
            said = said.replace("%1", setting_labels.name_source(winner))
        return f"{CHANGED_MARK} {said}", "", "working"

    @Slot()
    def _emit_edited(self) -> None:
        self.edited.emit(self)

    @Slot()
    def _want_reset(self) -> None:
        self.reset_wanted.emit(self)


# Settings that few users need to know; those of the tab Advanced are all of that kind.
_RARE = re.compile(
    r"server\.(ca_file|proxy|allow_http|.*_timeout|deadline|requests)|instrument\.uuid"
    r"|window\.update_url|data\.(keep_replaced|replace_freely|brake)"
    r"|filters\.(ignore_newer_than|.*_file|default_ignores|symlinks)"
    r"|limits\.(timetable|low_priority|pause_.*)"
    r"|transfer\.(ssh|ssh_agent|ciphers|key_file|compression|find_zeros|.*_timeout|attempts|batch_.*)"
)


class Form(QWidget):
    """All settings of one tab, below the headings of their sections; rare ones are folded."""

    def __init__(
        self, tab: Tab, asides: Mapping[str, FormRow], parent: QWidget | None = None
    ) -> None:
        """`asides` stand after the setting whose key they have."""
        super().__init__(parent)
        self._parts: dict[QWidget, list[FormRow]] = {}  # by section
        self._folds: dict[QWidget | None, FoldButton] = {}  # the same
        self._sought: tuple[str, Collection[str]] = ("", ())
        gap = self.fontMetrics().lineSpacing()
        for name in tab.sections:
            section = QWidget(self)
            heading = PlainLabel(setting_labels.name_section(name), section, heading=SECTION)
            column = vbox(heading, inside=section)
            column.setContentsMargins(0, 0, 0, gap)
            column.setSpacing(self.fontMetrics().averageCharWidth())
            # Widgets are made in the order that they have for Tab.
            settings = [entry for entry in iter_settings() if entry.section == name]
            common = [it for it in settings if not _RARE.fullmatch(it.key)]
            self._parts[section] = self._add_rows(column, common, asides)
            fold = self._folds[section] = FoldButton(self.tr("More settings"), section)
            fold.setAccessibleDescription(heading.text())
            column.addWidget(fold)
            rare = [it for it in settings if it not in common]
            self._parts[section] += self._add_rows(column, rare, asides)
            fold.toggled.connect(self._seek_again)
        layout = vbox(*self._parts, 1, inside=self)
        layout.setContentsMargins(gap, gap // 2, gap, 0)

    @property
    def rows(self) -> list[SettingRow]:
        """The rows, in their order."""
        parts = chain.from_iterable(self._parts.values())
        return [part for part in parts if isinstance(part, SettingRow)]

    def show_draft(self, draft: PendingChanges) -> None:
        """Show the values of a draft; what is folded and has a value of the user is unfolded."""
        for row in self.rows:
            row.show_draft(draft)
            if draft.is_own(row.key) or row.key in draft.problems:
                self.unfold(row)

    def unfold(self, row: SettingRow) -> None:
        """Unfold the rare settings of a section if this is one of them."""
        if _RARE.fullmatch(row.key):
            self._folds[row.parentWidget()].setChecked(True)

    def _add_rows(
        self, column: QVBoxLayout, settings: Sequence[Setting], asides: Mapping[str, FormRow]
    ) -> list[FormRow]:
        """Add the rows of settings to the layout of a section, and return them."""
        rows: list[FormRow] = []
        for setting in settings:
            rows.append(SettingRow(setting, column.parentWidget()))
            if setting.key in asides:
                rows.append(asides[setting.key])
                rows[-1].setParent(column.parentWidget())
        for row in rows:
            column.addWidget(row)
        return rows

    def seek(self, sought: str, hidden: Collection[str] = ()) -> bool:
        """Show only what matches a search, without `hidden` keys; return whether anything does.

        A search finds what is folded as well.
        """
        self._sought = sought, hidden
        any_found = False
        for section, parts in self._parts.items():
            found: list[QWidget] = []
            folded: list[QWidget] = []
            key = ""
            for part in parts:
                if isinstance(part, SettingRow):
                    key = part.key  # that of what follows as well, up to the next setting
                if key not in hidden and part.matches(sought):
                    (folded if _RARE.fullmatch(key) else found).append(part)
            fold = self._folds[section]
            fold.setVisible(bool(folded and not sought))
            if sought or fold.isChecked():
                found += folded
            for part in parts:
                part.setVisible(part in found)
            section.setVisible(bool(found or folded))
            any_found |= bool(found)
        return any_found

    @Slot()
    def _seek_again(self) -> None:
        self.seek(*self._sought)


_TIMED = ("timer", "watch")
_S3 = ("s3",)
_SSH = ("auto", "ssh", "http", "folder")  # registration over HTTP uses it as well
# For each setting that has an effect only with some values of another: which other, which values.
_USED_WITH: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "destination.address": ("destination.kind", ("host", "folder", "s3")),
    "data.group_prefix": (
        "data.layout",
        tuple(it.value for it in Layout if it.value.startswith("User Group")),
    ),
    "schedule.date": ("schedule.kind", ("once",)),
    "schedule.time": ("schedule.kind", ("once", "daily", "weekly")),
    "schedule.days": ("schedule.kind", ("weekly",)),
    "schedule.minutes": ("schedule.kind", _TIMED),
    "schedule.from_time": ("schedule.kind", _TIMED),
    "schedule.to_time": ("schedule.kind", _TIMED),
    "transfer.folder": ("transfer.method", ("folder",)),
    "transfer.s3_endpoint": ("transfer.method", _S3),
    "transfer.s3_region": ("transfer.method", _S3),
    "transfer.s3_bucket": ("transfer.method", _S3),
    "transfer.s3_prefix": ("transfer.method", _S3),
    "transfer.s3_box": ("transfer.method", _S3),
    "transfer.s3_access_key": ("transfer.method", _S3),
    "transfer.ssh": ("transfer.method", _SSH),
    "transfer.ssh_jump": ("transfer.method", _SSH),
    "transfer.ssh_agent": ("transfer.method", _SSH),
    "transfer.ciphers": ("transfer.method", _SSH),
    "transfer.host_keys": ("transfer.method", _SSH),
    "transfer.compression": ("transfer.method", _SSH),
    "transfer.find_zeros": ("transfer.method", _SSH),
}


_OF_MYTARDIS = re.compile(
    r"(server|instrument|archive)\..*|data\.(layout|group_prefix|unknown_owners)"
    r"|filters\.(owner|experiment)|transfer\.(method|folder|s3_.*|ssh_jump|ssh_agent)"
    r"|window\.notify_approval|advanced\.register_.*"
)


STEERING = frozenset(("destination.kind", *(other for other, _ in _USED_WITH.values())))


def find_hidden(draft: PendingChanges, *, unused: bool) -> frozenset[str]:
    """Return the keys that only concern a MyTardis server, if the destination is none.

    Those without effect are added if `unused` is set. Settings that must be corrected are never
    hidden.
    """
    hidden = {key for key in _USED_WITH if unused and describe_unused(key, draft)}
    if draft.value("destination.kind") != "mytardis":
        hidden |= set(filter(_OF_MYTARDIS.fullmatch, settings_by_key()))
    return frozenset(hidden - {*draft.problems})


def describe_unused(key: str, draft: PendingChanges) -> str:
    """Return which other setting leaves a setting without effect; empty if none does."""
    other, values = _USED_WITH.get(key, ("", ()))
    if not other or draft.value(other) in values:
        return ""
    said = translate("settings", "Not used: see “%1”")
    return said.replace("%1", setting_labels.label_of(settings_by_key()[other]))
