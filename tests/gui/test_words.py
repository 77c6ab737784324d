"""Texts from outside, as the window shows them."""

import re

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QTextDocumentFragment

from mydata_like.app.onboarding import LayoutSample
from mydata_like.core.deletion import DeletedFile
from mydata_like.core.errors import Problem, SettingsError
from mydata_like.core.file_status import Suggestion
from mydata_like.gui.pages.where_page import SuggestionsModel
from mydata_like.gui.status_text import describe_problem
from mydata_like.gui.theme import texts
from mydata_like.gui.theme.widgets import ElidedLabel
from mydata_like.gui.where.free_dialog import CleanupResultsModel
from mydata_like.gui.wizard.folders_step import PreviewModel

TIP = Qt.ItemDataRole.ToolTipRole
ODD = ["O'Brien & R&D.tif", "<b>bold</b>", "a  b", "&lt;"]


def seen(tip):
    """What a user reads in a tool tip."""
    assert tip.startswith("<qt")  # else Qt guesses what it is
    return QTextDocumentFragment.fromHtml(tip).toPlainText()


@pytest.mark.parametrize("text", ODD)
def test_a_tool_tip_shows_a_text_as_it_is(text):
    assert seen(texts.tip(text)) == text


def test_an_empty_cell_has_no_tool_tip():
    assert texts.tip("") == ""


@pytest.mark.parametrize("text", ODD)
def test_tool_tips_of_models_show_names_as_they_are(qapp, text):
    key = text.encode()
    suggestions, fates, samples = (
        SuggestionsModel(),
        CleanupResultsModel(reasons=False),
        PreviewModel(),
    )
    suggestions.show([Suggestion(key, 1, "verified")])
    fates.show([DeletedFile(key, 1, None, 1)])
    samples.append([LayoutSample(key, "ada", "x", "y", 1, 1, False)])

    assert seen(suggestions.index(0, 0).data(TIP)) == text
    assert seen(fates.index(0, 0).data(TIP)) == text
    assert seen(samples.index(0, 0).data(TIP)) == text


@pytest.mark.parametrize("text", ODD)
def test_what_is_cut_short_is_whole_in_its_tool_tip(qtbot, text):
    label = ElidedLabel(text * 99)
    qtbot.addWidget(label)
    label.resize(99, 20)
    label.show()

    assert seen(label.toolTip()) == text * 99


def test_an_error_says_what_to_do_on_a_line_of_its_own():
    assert texts.error_text(SettingsError("No.", hint="Do\x1bthis.")) == "No.\nDo\\x1bthis."
    assert texts.error_text(SettingsError("No.")) == "No."


def test_a_name_that_looks_like_a_placeholder_is_shown_as_it_is():
    assert texts.filled("%1: %2", "%2.tif", "It is locked.") == "%2.tif: It is locked."


EXPERTS = (
    *("host-key.changed", "host-key.unknown", "uploader.not-approved", "uploader.not-admitted"),
    *("uploader.revoked", "ssh.key-refused", "ssh.no-agreement", "staging.denied", "staging.full"),
    *("staging.unproven", "verify.failed", "ledger.damaged", "link.lost", "channel.stalled"),
)


@pytest.mark.parametrize("code", EXPERTS)
def test_what_only_experts_understand_is_a_detail(code):
    said = describe_problem(Problem(code, "The key SHA256:x of the staging host.", "Do y."))

    shown = f"{said.sentence} {said.hint}"
    assert not re.search(r"staging|SSH|SHA256|channel|ledger|record|checksum", shown)
    assert "The key SHA256:x of the staging host." in said.details
