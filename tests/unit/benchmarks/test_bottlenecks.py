"""Which bottlenecks are injected, and what the benchmark of the speed test makes of the answers."""

import json

import pytest

from benchmarks.bottlenecks import Round, draw, row, summarize, to_record
from benchmarks.corpus import Scale, make_large
from benchmarks.injection import BOTTLENECKS
from benchmarks.site import fix, lay

FOUND = Round(
    kind="network",
    text="a network of 10 MB/s",
    limit="network",
    together=10e6,
    carried=9e6,
    advice=[],
    busy=0.1,
)


def changed(**changes) -> Round:
    fields = {name: getattr(FOUND, name) for name in FOUND.__slots__}
    return Round(**(fields | changes))


def test_the_same_seed_injects_the_same_bottlenecks() -> None:
    assert draw(5, 20) == draw(5, 20)
    assert draw(5, 20) != draw(6, 20)


def test_each_kind_is_drawn_before_any_is_drawn_again() -> None:
    names = [name for name, _ in draw(7, len(BOTTLENECKS))]

    assert sorted(names) == sorted(BOTTLENECKS)


def test_one_kind_may_be_asked_for_and_what_needs_root_left_out() -> None:
    assert {name for name, _ in draw(1, 3, "api")} == {"api"}
    others = {name for name, _ in draw(1, 20, held_back=False)}
    assert BOTTLENECKS.keys() - others == {"uploader", "host", "source", "staging"}
    with pytest.raises(SystemExit, match="no bottleneck elsewhere"):
        draw(1, 1, "elsewhere")


def test_a_slowest_part_is_right_by_the_table() -> None:
    assert FOUND.right
    assert not changed(limit="server disk").right


def test_advice_is_compared_with_the_best_of_the_sweep() -> None:
    sweep = {"aes128-ctr 1": 50e6, "aes128-ctr 2": 100e6}
    swept = changed(sweep=sweep, turns=[(90e6, 100e6), (10e6, 99e6), (95e6, 200e6)])

    assert swept.reached == 0.9
    assert changed(sweep=sweep).reached == 0
    assert row(swept)[-2] == "90% of aes128-ctr 2"
    assert fix("aes128-ctr 2") == {"transfer.ciphers": ["aes128-ctr"], "transfer.channels": 2}
    assert row(FOUND)[-2] == "-"


def test_the_sums_state_how_many_were_right() -> None:
    lines = summarize([FOUND, changed(limit="API", carried=5e6)])

    assert lines[2:] == [
        "| slowest part right | >= 95 % | 1 of 2 (50%) |",
    ]
    assert "after the advice" in summarize([changed(sweep={"aes128-ctr 1": 9e6})])[-1]


def test_all_rounds_become_json() -> None:
    record = json.loads(json.dumps(to_record(3, [FOUND])))

    assert record["seed"] == 3
    assert record["rounds"][0]["right"] is True
    assert record["rounds"][0]["carried"] == 9e6


def test_files_are_laid_out_in_copies(tmp_path) -> None:
    corpus = make_large(tmp_path / "once", Scale(large_count=2, large_size=100))
    (tmp_path / "twice").mkdir()

    laid = lay(corpus, tmp_path / "twice", ("a", "b"), link=True)

    assert laid.folders == ("dataset-000-a", "dataset-000-b")
    assert len([*laid.root.rglob("*.raw")]) == 4
