"""A fair contest: turns, failures, and what the report says about them. Nothing is timed here."""

import sys
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from benchmarks.arena import Arena, Link
from benchmarks.cases.distant import OneFolder
from benchmarks.contest import OURS, Case, Entrant, Outcome, Peer, Row, Target, compete, turns
from benchmarks.corpus import Corpus, Scale, make_growing, make_large, make_tiny
from benchmarks.growth import EACH_FURTHER, Growing
from benchmarks.measure import ContestError, Sample, measure
from benchmarks.report import judge, to_markdown, to_record
from benchmarks.reserve import Reserve

SMALL = Scale(large_count=2, large_size=3_000_000, tiny_count=6, tiny_size=10, growing_sizes=())


@dataclass
class Scripted:
    """A scripted contestant: one sample for each round, or an error."""

    entrant: Entrant
    seconds: list[float | str]
    diary: list[str] = field(default_factory=list)

    @property
    def entrants(self) -> list[Entrant]:
        return [self.entrant]

    def prepare(self, arena: Arena) -> None:
        self.diary.append(f"prepare {self.entrant.name}")

    def run(self, arena: Arena) -> list[Sample]:
        self.diary.append(self.entrant.name)
        result = self.seconds.pop(0)
        if isinstance(result, str):
            raise ContestError(result)
        return [Sample(result, client=result, server=0.0, memory=1)]


@pytest.fixture
def arena(tmp_path: Path):
    link = Link(
        host="127.0.0.1",
        port=1,
        username="nobody",
        key_file=tmp_path / "key",
        known_hosts=tmp_path / "known",
        host_key="SHA256:none",
    )
    with ExitStack() as stack:
        yield Arena(
            link=link,
            servers=(),
            corpus=make_tiny(tmp_path / "source", SMALL),
            directory=tmp_path,
            stack=stack,
            reserve=stack.enter_context(Reserve(tmp_path)),
        )


def case_of(*contestants: object, targets: tuple[Target, ...] = ()) -> Case:
    return Case(
        name="T1",
        title="a trial",
        unit="files/s",
        make=make_tiny,
        contestants=lambda corpus: list(contestants),
        targets=targets,
        describe=lambda scale: "",
    )


def outcome_of(ours: list[float], peer: list[float], target: Target) -> Outcome:
    rows = [
        Row(Entrant(name, family), [Sample(value, value, 0.0, 1) for value in values])
        for name, family, values in (("mine", OURS, ours), ("theirs", "peer", peer))
    ]
    return Outcome(case_of(targets=(target,)), Corpus(Path(), ("a",), 1, ("d",), 1), rows, [])


def say_nothing(line: str) -> None:
    pass


def test_every_round_begins_with_another_contestant_and_holds_all():
    orders = turns(count=5, rounds=3)

    assert len({order[0] for order in orders}) == 3
    assert all(sorted(order) == [0, 1, 2, 3, 4] for order in orders)


def test_contestants_run_in_turns_after_all_were_prepared(arena: Arena):
    diary: list[str] = []
    first, second = (
        Scripted(Entrant(name, name), [1.0, 1.0], diary) for name in ("first", "second")
    )

    compete(case_of(first, second), arena, 2, "", say_nothing)

    assert diary[:2] == ["prepare first", "prepare second"]
    assert diary[2:] == ["first", "second", "second", "first"]


def test_a_contestant_that_fails_is_out_and_the_others_go_on(arena: Arena):
    weak = Scripted(Entrant("weak", OURS), [2.0, "it broke", 2.0])
    firm = Scripted(Entrant("firm", "peer"), [1.0, 1.0, 1.0])

    outcome = compete(case_of(weak, firm), arena, 3, "", say_nothing)

    assert [len(row.samples) for row in outcome.rows] == [1, 3]
    assert outcome.rows[0].trouble == "it broke"
    assert "weak failed: it broke" in to_markdown(outcome)


def test_a_missing_program_is_said_and_skipped(arena: Arena):
    absent = Scripted(Entrant("absent", "peer", needs=("no-such-program",)), [])
    said: list[str] = []

    outcome = compete(case_of(absent), arena, 1, "", said.append)

    assert said == ["Skipped: absent, because no-such-program is missing."]
    assert outcome.rows == []
    assert said[0] in to_markdown(outcome)


@pytest.mark.process
def test_a_peer_that_leaves_a_file_out_has_failed(arena: Arena):
    name = arena.corpus.files[0]
    lazy = Peer(
        Entrant("lazy", "peer"),
        lambda arena: [["cp", str(arena.corpus.root / name), str(arena.target)]],
    )

    with pytest.raises(ContestError, match="1 files of 10 bytes instead of 6 of 60"):
        lazy.run(arena)


def test_a_slow_peer_carries_one_folder_and_counts_as_if_it_had_all(tmp_path: Path, arena: Arena):
    many = make_tiny(tmp_path / "many", SMALL._replace(tiny_count=3000))

    [sample] = OneFolder(Scripted(Entrant("slow", "peer"), [2.0])).run(replace(arena, corpus=many))

    assert (sample.seconds, sample.client) == (6.0, 6.0)


@pytest.mark.process
def test_the_target_is_empty_before_each_run(arena: Arena):
    copy = Peer(
        Entrant("copy", "peer"),
        lambda arena: [["cp", "-r", f"{arena.corpus.root}/.", str(arena.target)]],
    )
    arena.clear()
    (arena.target / "left over").write_text("from the one before")

    copy.run(arena)

    assert not (arena.target / "left over").exists()


@pytest.mark.parametrize(
    ("target", "ratio", "met"),
    [
        pytest.param(Target(("peer",), "", at_least=1.5), 2.0, True, id="fast enough"),
        pytest.param(Target(("peer",), "", at_least=2.5), 2.0, False, id="too slow"),
        pytest.param(Target(("peer",), "", at_most=0.6), 0.5, True, id="little CPU"),
        pytest.param(Target(("peer",), "", at_most=0.4), 0.5, False, id="much CPU"),
    ],
)
def test_a_target_compares_medians(target: Target, ratio: float, met: bool):
    outcome = outcome_of([1.0, 2.0, 9.0], [4.0, 4.0, 4.0], target)

    judged = judge(outcome, target)

    assert judged is not None
    assert (judged.ratio, judged.met) == (ratio, met)


def test_a_target_without_its_peer_is_not_measured():
    target = Target(("somebody else",), "faster", at_least=1)
    outcome = outcome_of([1.0], [1.0], target)

    assert "| faster | >= 1 | not measured |" in to_markdown(outcome)
    assert to_record(outcome)["targets"] == [{**target._asdict(), "measured": None}]


def test_a_target_without_peers_is_absolute():
    target = Target((), "few requests", at_most=5, figure="requests")
    outcome = outcome_of([1.0, 2.0, 3.0], [], target)
    row = outcome.rows[0]
    row.samples[:] = [sample._replace(facts={"requests": 4.0}) for sample in row.samples]

    assert "| few requests (mine) | <= 5 | 4 | 4 - 4 | yes |" in to_markdown(outcome)


def test_a_target_without_a_figure_is_not_measured():
    outcome = outcome_of([1.0], [1.0], Target(("peer",), "", at_most=1.0, figure="requests"))

    assert judge(outcome, outcome.case.targets[0]) is None


def test_growth_is_what_each_further_file_takes(tmp_path: Path, arena: Arena):
    made = make_growing(tmp_path / "growing", SMALL._replace(growing_counts=(1, 3)))
    growing = Growing.over(made, Scripted(Entrant("mine", OURS), [1.0, 5.0]), "files")

    samples = growing.run(replace(arena, corpus=made))

    assert [entrant.name for entrant in growing.entrants] == ["mine: 1 files", "mine: 3 files"]
    assert [sample.facts.get(EACH_FURTHER) for sample in samples] == [None, 2e6]


@pytest.mark.process
def test_the_memory_of_what_a_command_started_counts():
    script = "kept = bytearray(50_000_000); sum(range(10_000_000))"

    sample, _ = measure([[sys.executable, "-c", script]], [])

    assert sample.memory >= sample.engine >= 50_000_000


def test_shares_hold_every_file_once(arena: Arena):
    shares = arena.shares(4)

    assert sorted(path for share in shares for path in share) == sorted(arena.corpus.files)


def test_the_corpus_is_the_same_every_time_and_no_file_like_another(tmp_path: Path):
    first, second = (make_large(tmp_path / name, SMALL) for name in ("a", "b"))

    contents = [
        [(made.root / path).read_bytes() for path in made.files] for made in (first, second)
    ]

    assert contents[0] == contents[1]
    assert len(set(contents[0])) == SMALL.large_count
    assert sum(map(len, contents[0])) == first.bytes


@pytest.mark.process
def test_the_cpu_of_what_a_command_started_counts():
    busy = "i=0; while [ $i -lt 40000 ]; do i=$((i+1)); done"

    sample, printed = measure([["sh", "-c", f"sh -c '{busy}'; echo done"]], [])

    assert sample.client > 0
    assert printed == ["done\n"]


@pytest.mark.process
def test_the_cpu_of_what_a_command_left_behind_counts():
    spin = f"{sys.executable} -c 'import time\nwhile time.process_time() < 1: pass'"

    sample, _ = measure([["sh", "-c", f"{spin} & sleep 0.5"]], [])

    assert sample.client >= 1


@pytest.mark.process
def test_a_command_that_cannot_start_has_failed():
    with pytest.raises(ContestError, match="no-such-program did not start"):
        measure([["no-such-program"]], [])


@pytest.mark.process
def test_a_command_that_fails_says_its_last_words():
    with pytest.raises(ContestError, match="sh ended with 3: no room"):
        measure([["sh", "-c", "echo no room >&2; exit 3"]], [])
