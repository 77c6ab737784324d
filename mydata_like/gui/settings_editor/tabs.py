"""The tabs of the settings dialog, and the search in all of them."""

from collections.abc import Iterator, Mapping

from PySide6.QtCore import QDate, Qt, Signal, Slot
from PySide6.QtGui import QIcon, QKeySequence, QShortcut
from PySide6.QtWidgets import QFrame, QLineEdit, QScrollArea, QTabBar, QWidget

from mydata_like.gui import setting_labels
from mydata_like.gui.settings_editor.form import STEERING, Form, FormRow, SettingRow, find_hidden
from mydata_like.gui.theme.layouts import frameless, vbox
from mydata_like.gui.theme.widgets import PlainLabel, icon
from mydata_like.settings.pending_changes import PendingChanges
from mydata_like.settings.schema import iter_settings


class SettingsTabs(QWidget):
    """Shows a draft by tabs; each tab is built when it is first shown or searched."""

    edited = Signal()

    def __init__(self, asides: Mapping[str, FormRow], parent: QWidget | None = None) -> None:
        """`asides` stand after the setting whose key they have."""
        super().__init__(parent)
        self._asides = asides
        self._draft = PendingChanges()
        self._leaves = setting_labels.list_tabs()
        self._forms: dict[int, Form] = {}
        self._search = QLineEdit(self)
        self._search.setPlaceholderText(self.tr("Search all settings"))
        self._search.setAccessibleName(self.tr("Search all settings"))
        self._search.setClearButtonEnabled(True)
        self._cursor: QWidget = self._search  # the focus when the fields were disabled
        self._tabs = QTabBar(self)
        self._tabs.setExpanding(False)
        self._tabs.setAccessibleName(self.tr("Groups of settings"))
        for leaf in self._leaves:
            self._tabs.addTab(leaf.title)
        self._nothing = PlainLabel(self.tr("No setting matches your search."), self)
        self._nothing.hide()
        self._scroll = QScrollArea(self)
        self._page = QWidget(self._scroll)

        self._column = frameless(vbox(self._nothing, 1, inside=self._page))
        self._column.setSpacing(0)
        self._scroll.setWidget(self._page)
        self._scroll.setWidgetResizable(True)
        self._scroll.setFrameShape(QFrame.Shape.StyledPanel)
        self._scroll.setAccessibleName(self.tr("Settings"))
        layout = frameless(vbox(self._search, self._tabs, (self._scroll, 1), inside=self))
        layout.setSpacing(self.fontMetrics().averageCharWidth())

        self._tabs.currentChanged.connect(self._turn)
        self._tabs.tabBarClicked.connect(self._search.clear)
        self._search.textChanged.connect(self._show_search)
        finding = QShortcut(QKeySequence(QKeySequence.StandardKey.Find), self)
        finding.activated.connect(self._search.setFocus)

    @property
    def title(self) -> str:
        """The name of the current tab."""
        return self._tabs.tabText(self._tabs.currentIndex()).replace("&", "")

    def show_draft(self, draft: PendingChanges) -> None:
        """Show the values of a draft."""
        self._draft = draft
        self._find_form(self._tabs.currentIndex())
        for form in self._forms.values():
            form.show_draft(draft)
        self._show_search()
        self._mark_tabs()

    def hold(self, *, held: bool) -> None:
        """Disable the fields; enabling them restores the focus."""
        focused = self.window().focusWidget()
        if held and focused is not None:
            self._cursor = focused
        self.setEnabled(not held)
        if not held:
            self._cursor.setFocus()

    def reveal(self, key: str) -> None:
        """Show a setting and what stands with it, and focus it; an unknown key is ignored."""
        row = self.find_row(key)
        if row is None:
            return
        self._search.clear()
        self._tabs.setCurrentIndex(self._find_tab(key))
        self._find_form(self._find_tab(key)).unfold(row)
        row.show()  # also without effect
        row.editor.setFocus()
        # A page that was never shown has no size yet.
        self._page.adjustSize()
        for part in filter(None, (self._asides.get(key), row)):
            self._scroll.ensureWidgetVisible(part)

    def find_row(self, key: str) -> SettingRow | None:
        """Return the row of a setting; its tab is built if necessary."""
        index = self._find_tab(key)
        rows = self._find_form(index).rows if index >= 0 else ()
        return next((row for row in rows if row.key == key), None)

    def search(self, sought: str) -> None:
        """Show only the settings of all tabs that match; an empty text ends the search."""
        self._search.setText(sought)

    def end_search(self) -> bool:
        """Show the tab again; return whether there was a search."""
        searched = bool(self._search.text())
        self._search.clear()
        return searched

    def go_to_found(self) -> bool:
        """Focus the first match; return whether the focus was in the search field."""
        searching = self._search.hasFocus()
        row = next((row for row in self._rows if row.isVisibleTo(self)), None)
        if searching and row is not None:
            row.editor.setFocus()
        return searching

    @property
    def found(self) -> tuple[str, ...]:
        """The keys of the displayed settings."""
        return tuple(row.key for row in self._rows if row.isVisibleTo(self))

    @property
    def _rows(self) -> Iterator[SettingRow]:
        """The settings of the tabs that have been built, in their order."""
        return (row for index in sorted(self._forms) for row in self._forms[index].rows)

    def _find_tab(self, key: str) -> int:
        section = key.partition(".")[0]
        found = (at for at, leaf in enumerate(self._leaves) if section in leaf.sections)
        return next(found, -1)

    def _find_form(self, index: int) -> Form:
        if index not in self._forms:
            form = Form(self._leaves[index], self._asides, self._page)
            for row in form.rows:
                row.edited.connect(self._take_edit)
                row.reset_wanted.connect(self._reset)
            form.show_draft(self._draft)
            form.hide()
            self._forms[index] = form
            self._column.insertWidget(sorted(self._forms).index(index), form)
            self._order_stops()
        return self._forms[index]

    def _order_stops(self) -> None:
        """Set the tab order to the visual order, however the tabs were built."""
        before: QWidget = self._scroll
        for index in sorted(self._forms):
            for widget in self._forms[index].findChildren(QWidget):
                stops = widget.focusPolicy() & Qt.FocusPolicy.TabFocus and not widget.focusProxy()
                if stops and widget.window() == self.window():  # and not in a pop-up list
                    QWidget.setTabOrder(before, widget)
                    before = widget

    @Slot(object)
    def _take_edit(self, row: SettingRow) -> None:
        self._draft.set(row.key, row.editor.value())
        # A schedule of one run needs a day: tomorrow, unless the user chooses another.
        day, once = self.find_row("schedule.date"), self._draft.value("schedule.kind") == "once"
        if day is not None and once and self._draft.value("schedule.date") is None:
            tomorrow = QDate.currentDate().addDays(1).toString("yyyy-MM-dd")
            self._draft.set("schedule.date", tomorrow)
            day.show_draft(self._draft)
        self._refresh(row)

    @Slot(object)
    def _reset(self, row: SettingRow) -> None:
        self._draft.reset(row.key)
        row.show_draft(self._draft)
        row.editor.setFocus()  # the button has vanished
        self._refresh(row)

    def _refresh(self, changed: SettingRow) -> None:
        """Show the status of the values that the user is editing."""
        if changed.key in STEERING:
            self._show_search()
        for row in self._rows:
            row.show_facts(self._draft)
        self._mark_tabs()
        self.edited.emit()

    @Slot()
    def _turn(self) -> None:
        self._show_search()
        self._scroll.verticalScrollBar().setValue(0)

    @Slot()
    def _show_search(self) -> None:
        """Show the matches in all tabs, or one whole tab if there is no search."""
        sought = self._search.text().strip()
        hidden = find_hidden(self._draft, unused=not sought)  # a search says why they have none
        if sought:
            places = range(len(self._leaves))
            shown = [at for at in places if self._find_form(at).seek(sought, hidden)]
        else:
            shown = [self._tabs.currentIndex()]
            self._find_form(shown[0]).seek("", hidden)
        for at, form in self._forms.items():
            form.setVisible(at in shown)
        self._nothing.setVisible(not shown)

    def _mark_tabs(self) -> None:
        keys = set(self._draft.wrong_keys)
        wrong = {setting.section for setting in iter_settings() if setting.key in keys}
        for at, leaf in enumerate(self._leaves):
            marked = not wrong.isdisjoint(leaf.sections)
            self._tabs.setTabIcon(at, icon("problems", "problem") if marked else QIcon())
