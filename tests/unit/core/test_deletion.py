"""How safe the data is: SAFE only where nothing is missing for it."""

import itertools

import pytest

from mydata_like.core.deletion import STOPPED, RunSums, Safety, SafetyEvidence, judge_safety
from mydata_like.core.errors import Problem
from mydata_like.core.model import AtRisk

SAFE = RunSums(found=4, verified=3, skipped=1)
WELL = SafetyEvidence(last=SAFE, whole=SAFE)
GONE = Problem("data.unavailable", "It is gone.")
DOUBTS = {
    "at_risk": AtRisk(files=1),
    "cut_off": True,
    "sources": 1,
    "data_problem": GONE,
    "last": RunSums(found=4, verified=3, waiting=1),
    "whole": None,
}


def test_all_is_safe_after_a_whole_run_in_which_all_was_verified():
    assert judge_safety(WELL) is Safety.SAFE
    assert judge_safety(WELL._replace(last=RunSums(found=1, verified=1))) is Safety.SAFE


@pytest.mark.parametrize("count", range(1, len(DOUBTS) + 1))
def test_no_doubt_and_no_several_together_are_called_safe(count):
    for chosen in itertools.combinations(DOUBTS, count):
        changes = {name: DOUBTS[name] for name in chosen}

        assert judge_safety(WELL._replace(**changes)) is not Safety.SAFE


@pytest.mark.parametrize(
    ("evidence", "safety"),
    [
        (SafetyEvidence(), Safety.UNKNOWN),
        (SafetyEvidence(last=SAFE), Safety.UNKNOWN),  # it looked at one folder only
        (SafetyEvidence(last=RunSums(), whole=RunSums()), Safety.UNKNOWN),  # nothing was found
        (SafetyEvidence(whole=RunSums(found=2, skipped=2)), Safety.UNKNOWN),
        (SafetyEvidence(whole=SAFE._replace(problem=STOPPED)), Safety.UNKNOWN),
        (SafetyEvidence(cut_off=True), Safety.AT_RISK),
        (SafetyEvidence(at_risk=AtRisk(files=1)), Safety.AT_RISK),
        (WELL._replace(sources=1), Safety.AT_RISK),
        (WELL._replace(whole=SAFE._replace(left_behind=1)), Safety.AT_RISK),
        (WELL._replace(last=SAFE._replace(failed=1)), Safety.PROBLEM),
        (WELL._replace(last=SAFE._replace(problem="server.unavailable")), Safety.PROBLEM),
        (WELL._replace(data_problem=GONE), Safety.PROBLEM),
    ],
)
def test_each_doubt_has_its_level(evidence, safety):
    assert judge_safety(evidence) is safety


def test_sums_are_read_as_events_state_them():
    record = {"found": 2, "verified": 1, "problem": {"code": STOPPED}, "sent": 7}

    assert RunSums.of(record) == RunSums(found=2, verified=1, problem=STOPPED)
    assert RunSums.of({}) == RunSums()
