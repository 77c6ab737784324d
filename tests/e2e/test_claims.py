"""What every view says after an upload was interrupted, against what the server has."""

from dataclasses import replace

import pytest

from tests.privileges import IS_ROOT
from tests.sshd_fixture import needs_sshd
from tests.trials.claim import INTERRUPTIONS, NEEDS_ROOT, open_trial, play
from tests.trials.claims import (
    ALL,
    AT_RISK,
    CUT_OFF,
    MAY_DELETE,
    SAFE,
    SENT,
    UNKNOWN,
    VERIFIED_COUNT,
    Claim,
    Views,
    find_disagreements,
    find_false_claims,
    find_forgotten,
    read_look,
)
from tests.trials.truth import Local, Truth

pytestmark = [pytest.mark.e2e, needs_sshd]


ONLY_ROOT = pytest.mark.skipif(not IS_ROOT, reason="only root can mount a small disk")
TRIALS = [
    pytest.param(name, id=name, marks=[ONLY_ROOT] if name in NEEDS_ROOT else [])
    for name in INTERRUPTIONS
]


@pytest.mark.parametrize("interruption", TRIALS)
def test_no_view_claims_more_than_the_server_has_when(interruption, tmp_path):
    wrongs = play(interruption, tmp_path / "site")

    assert not wrongs, "\n".join(wrongs)


def test_every_view_agrees_after_a_run_and_a_false_row_of_the_ledger_is_reported_after_the_next(
    tmp_path,
):
    """A lost record is not seen without a look at the server; the next run has to see it."""
    with open_trial(tmp_path / "site") as trial:
        trial.make_all_safe()
        views = Views(trial.site)
        well = find_disagreements(views.collect(trial.truth()), trial.truth())
        trial.site.server.lose(trial.site.server.datafiles()[0].id)
        truth = trial.truth()
        claims = views.collect(truth)
        (lost,) = truth.at_risk
        found = find_false_claims(claims, truth)
        excused = find_false_claims(claims, replace(truth, excused=frozenset({lost.key})))
        trial.site.run()
        healed = find_disagreements(views.collect(trial.truth()), trial.truth())

    assert well == []
    assert any(wrong.startswith("overview icon says safe of all") for wrong in found)
    assert any(wrong.startswith(f"where --json says safe of {lost.key}") for wrong in found)
    assert any(wrong.startswith("status --json says files at risk 0") for wrong in found)
    assert any(wrong.startswith("tray icon says safe of all") for wrong in found)
    assert any(wrong.startswith("history says safe of all") for wrong in found)
    assert any(wrong.startswith(f"transfers says safe of {lost.key}") for wrong in found)
    assert any(wrong.startswith("folders says safe of") for wrong in found)
    assert any(wrong.startswith(f"where page says safe of {lost.key}") for wrong in found)
    assert excused == []
    assert healed == []


def test_free_may_not_be_excused_since_it_asks_the_server():
    truth = replace(TRUTH, excused=frozenset({"a/x/lost"}))

    assert find_false_claims([Claim("free --dry-run", MAY_DELETE, "a/x/lost")], truth)


def a_file(key, size=10):
    _, dataset, name = key.split("/")
    return Local(key, (dataset, "", name), None, size, "0" * 32)


TRUTH = Truth(
    files=(a_file("a/x/safe"), a_file("a/x/lost"), a_file("b/y/sent"), a_file("b/y/left")),
    left_out=frozenset({"b/y/left"}),
    safe=frozenset({"a/x/safe"}),
    registered=frozenset({"a/x/safe"}),
    sent=frozenset({"a/x/safe", "b/y/sent"}),
    stored=1,
)


@pytest.mark.parametrize(
    ("claim", "true"),
    [
        (Claim("status", SAFE), False),
        (Claim("where", SAFE, "a/x/safe"), True),
        (Claim("where", SAFE, "a/x/lost"), False),
        (Claim("where", SAFE, "no such file"), False),
        (Claim("where", SENT, "b/y/sent"), True),
        (Claim("where", SENT, "a/x/lost"), False),
        (Claim("folders", SAFE, "a/x/"), False),
        (Claim("folders", SENT, "b/y/"), True),
        (Claim("folders", SAFE, "c/"), False),
        (Claim("folders", VERIFIED_COUNT, "a/x/", 1), True),
        (Claim("folders", VERIFIED_COUNT, "a/x/", 2), False),
        (Claim("overview", VERIFIED_COUNT, ALL, 1), True),
        (Claim("overview", VERIFIED_COUNT, ALL, 2), False),
        (Claim("status", AT_RISK, ALL, 2), True),
        (Claim("status", AT_RISK, ALL, 3), True),
        (Claim("status", AT_RISK, ALL, 1), False),
        (Claim("status", CUT_OFF), True),
    ],
    ids=str,
)
def test_a_claim_is_false_that_is_more_than_the_truth(claim, true):
    assert (find_false_claims([claim], TRUTH) == []) is true


def test_finds_of_the_last_second_may_be_missing_in_the_report_of_an_interrupted_run():
    few = [Claim("overview card", AT_RISK, ALL, 1), Claim("overview", CUT_OFF)]
    silent = few[:1]

    assert find_false_claims(few, TRUTH, unseen=True) == []
    assert find_false_claims(few, TRUTH)
    assert find_false_claims(silent, TRUTH, unseen=True)
    assert find_false_claims([*few, Claim("overview icon", SAFE)], TRUTH, unseen=True)


def test_an_unknown_number_is_not_shown_as_a_number():
    assert find_false_claims([Claim("a", AT_RISK, ALL, 0), Claim("a", UNKNOWN)], TRUTH) == []
    assert find_false_claims([Claim("a", AT_RISK, ALL, 0), Claim("b", UNKNOWN)], TRUTH)


def test_after_a_successful_run_silence_is_not_agreement():
    safe = replace(TRUTH, files=TRUTH.files[:1])

    wrong = find_disagreements([Claim("status --json", AT_RISK, ALL, 1)], safe)

    assert "overview icon does not say that all is safe" in wrong
    assert "where --json does not say safe of a/x/safe" in wrong
    assert "status --json says files at risk 1 of all, and there are 0" in wrong
    assert "where --json does not know a/x/lost" in find_forgotten([], TRUTH)


def a_page(*texts, level="", rows=(), name=""):
    tables = [{"name": name, "rows": list(rows)}]
    return {"texts": list(texts), "groups": [list(texts)], "tables": tables, "level": level}


def a_row(path=None, **cells):
    return {"cells": cells, "above": [], "path": path}


def a_look(**pages):
    empty = {name: a_page() for name in ("overview", "folders", "transfers", "problems", "history")}
    return {**empty, "where": {}, "tray": {"tip": "", "level": "waiting"}, "line": [], **pages}


@pytest.mark.parametrize(
    "look",
    [
        a_look(overview=a_page("All 364 files are safe on the server")),
        a_look(overview=a_page("Ready", level="good")),
        a_look(overview=a_page("Only on this computer", "Nothing")),
        a_look(overview=a_page("Only on this computer", "1 file", "5 MB")),
        a_look(
            overview=a_page("1 verified", "0 in progress", "0 waiting", "0 skipped", "0 failed")
        ),
        a_look(overview=a_page("Recent datasets", "x · a", "2 of 3 files verified")),
        a_look(overview=a_page("Recent datasets", "y · b", "1 of 1 file verified")),
        a_look(tray={"tip": "", "level": "idle"}),
        a_look(line=["No files were found"]),
        a_look(problems=a_page("Nothing else is wrong.")),
        a_look(history=a_page(name="Runs", rows=[a_row(Outcome="All 0 files safe")])),
        a_look(folders=a_page(name="Folders", rows=[a_row("a/x", State="Sent")])),
        a_look(folders=a_page(name="Folders", rows=[a_row("c", Verified="0 of 0")])),
        a_look(
            transfers=a_page(name="Files", rows=[a_row(Name="lost", Folder="a/x", State="Sent")])
        ),
        a_look(where={"/data/a/x/lost": a_page("It was safe when the server was last checked")}),
    ],
    ids=[
        "the sentence",
        "the icon",
        "the card says nothing",
        "the card says too few",
        "the bar",
        "a dataset",
        "a whole dataset",
        "the tray's icon",
        "the status line",
        "problems",
        "history",
        "a folder's state",
        "a folder's numbers",
        "a row of transfers",
        "where",
    ],
)
def test_a_false_claim_is_found_in(look):
    assert find_false_claims(read_look(look, TRUTH), TRUTH)


def test_a_careful_window_is_believed():
    look = a_look(
        overview=a_page("Only on this computer", "2 files", "20 bytes", level="waiting")
        | {"groups": [["Recent datasets", "x · a", "1 of 2 files verified"]]},
        folders=a_page(name="Folders", rows=[a_row("a/x", State="Waiting", Verified="1 of 2")]),
        history=a_page(name="Runs", rows=[a_row(Outcome="Not finished")]),
        where={"/data/a/x/lost": a_page("No: the server has not verified it yet")},
    )

    assert find_false_claims(read_look(look, TRUTH), TRUTH) == []
