"""One setting in the dialog: what it is, its field, where its value is from, what is wrong."""

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QWidget

from mydata_like.gui.look import words
from mydata_like.gui.look.labels import PlainLabel
from mydata_like.gui.look.palette import Status
from mydata_like.gui.settings import terms
from mydata_like.gui.settings.moments import make_editor
from mydata_like.gui.settings.signs import QuietLabel, Sign, fits, lay_side_by_side
from mydata_like.settings.fields import Setting
from mydata_like.settings.layers import Layer
from mydata_like.settings.pending_changes import PendingChanges

CHANGED_MARK = "●"


class Row(QWidget):
    """Shows one setting of a draft, and tells when a person changes it."""

    edited = Signal(object)  # the row itself
    reset_wanted = Signal(object)  # the row itself

    def __init__(self, setting: Setting, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setting = setting
        self.editor = make_editor(setting, self)
        self._label = PlainLabel(terms.label_of(setting).replace("&", "&&"), self)
        self._label.setBuddy(self.editor.field)
        self._help = QuietLabel(terms.help_of(setting), self)
        self._source = Sign(self)
        self._problem = Sign(self)
        self._reset = QToolButton(self)
        self._reset.setText(self.tr("Reset"))
        self._reset.setAutoRaise(True)
        self._reset.setAccessibleName(self.tr("Reset: %1").replace("%1", terms.label_of(setting)))
        self._lay_out()
        self._connect()

    @property
    def key(self) -> str:
        """The dotted key of the setting."""
        return self.setting.key

    @property
    def problem(self) -> str:
        """What is said to be wrong."""
        return self._problem.text

    @property
    def source(self) -> str:
        """What is said of where the value is from."""
        return self._source.text

    def show_draft(self, draft: PendingChanges) -> None:
        """Show the value, and all that is said about it."""
        self.editor.show_value(draft.value(self.key))
        self.show_facts(draft)

    def show_facts(self, draft: PendingChanges) -> None:
        """Show what is said about the value, which a person may be typing at the moment."""
        fixed_by = draft.fixed_by(self.key)
        self.editor.set_fixed(fixed=bool(fixed_by))
        self._reset.setVisible(draft.is_own(self.key))
        self._source.say(*self._describe(draft, fixed_by))
        problem = draft.problems.get(self.key, "")
        if problem:
            said = f"{terms.label_of(self.setting)}: {words.plain(terms.with_labels(problem))}"
            self._problem.say(said, "problems", "problem")
        elif self.key in draft.missing:
            self._problem.say(self.tr("Needed before a run can start"), "waiting", "waiting")
        else:
            self._problem.say("")

    def matches(self, sought: str) -> bool:
        """Return whether all words of a search are found in what is said of the setting."""
        about = self.setting.about
        choices = (terms.name_choice(self.setting, choice) for choice in self.setting.choices)
        said = (
            terms.label_of(self.setting),
            terms.help_of(self.setting),
            self.key,
            about.label,
            *choices,
            *about.legacy,
        )
        return fits(sought, " ".join(said))

    def _describe(self, draft: PendingChanges, fixed_by: str) -> tuple[str, str, Status | None]:
        """Return where the value is from, with the icon and the status that go with it."""
        winner = draft.winner(self.key)
        if fixed_by:
            return terms.name_lock(winner, fixed_by), "padlock", None
        if not draft.is_changed(self.key):
            return terms.name_source(winner), "", None
        if draft.is_own(self.key):
            said = self.tr("Changed")
            return f"{CHANGED_MARK} {said}", "", "working"
        said = self.tr("Changed: reset to %1")
        if winner.source is Layer.DEFAULT:
            said = self.tr("Changed: reset to the default")
        return f"{CHANGED_MARK} {said.replace('%1', terms.name_source(winner))}", "", "working"

    def _lay_out(self) -> None:
        keep = self._reset.sizePolicy()
        keep.setRetainSizeWhenHidden(True)
        self._reset.setSizePolicy(keep)
        facts = QHBoxLayout()
        facts.addWidget(self._source, 1)
        facts.addWidget(self._reset)
        right = lay_side_by_side(self, self._label, self._help)
        right.addWidget(self.editor)
        right.addLayout(facts)
        right.addWidget(self._problem)
        right.addStretch(1)

    def _connect(self) -> None:
        self.editor.edited.connect(self._tell)
        self._reset.clicked.connect(self._want_reset)

    @Slot()
    def _tell(self) -> None:
        self.edited.emit(self)

    @Slot()
    def _want_reset(self) -> None:
        self.reset_wanted.emit(self)
