"""Change the code at random places, and count how many changes the tests notice.

`python -m tests.trials.mutations [--sample 100] [--seed 1] [--flow]`

Each change is made in a copy of the project: another comparison, `or` instead of `and`, a number
plus one, a condition reversed, or a call left out. Then the tests run that import the changed
module, and after them the other unit tests of its package, until one fails or takes too long; with
`--flow`, at last those of whole runs. The same seed gives the same sample as long as the code is
the same, so the share that is noticed shows whether a smaller set of tests still guards as much.
"""

import argparse
import ast
import os
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGES = "engine,ledger,transfer"
LIMIT = 900.0  # seconds for the tests of one change; a test that never ends has noticed it
LEFT_OUT = {".git", ".venv", "build", "dist"}
COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
SUMS: dict[type[ast.operator], str] = {ast.Add: "-", ast.Sub: "+", ast.Mult: "+"}


class Mutation(NamedTuple):
    """A change: the text from one offset of a file to another is replaced."""

    file: str  # relative to the project
    line: int
    start: int
    end: int
    text: str

    def apply(self, source: str) -> str:
        return source[: self.start] + self.text + source[self.end :]

    def describe(self, source: str) -> str:
        return f"{self.file}:{self.line}: {source[self.start : self.end]!r} -> {self.text!r}"


def list_mutations(file: str, source: str) -> Iterator[Mutation]:
    """Yield every change of a file that this trial knows, in the order of the file."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    raw = source.encode()

    def offset(line: int, column: int) -> int:
        return len(raw[: starts[line - 1] + column].decode())

    def between(left: ast.expr, right: ast.expr, word: str) -> Mutation:
        start = offset(left.end_lineno or 0, left.end_col_offset or 0)
        end = offset(right.lineno, right.col_offset)
        gap = source[start:end]
        opened, closed = gap.rfind(")") + 1, gap.find("(")
        closing, opening = gap[:opened], gap[closed:] if closed >= opened else ""
        return Mutation(file, left.lineno, start, end, f"{closing} {word} {opening}")

    def whole(node: ast.expr | ast.stmt, text: str) -> Mutation:
        start = offset(node.lineno, node.col_offset)
        end = offset(node.end_lineno or 0, node.end_col_offset or 0)
        return Mutation(file, node.lineno, start, end, text)

    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARISONS:
                yield between(left, right, COMPARISONS[type(op)])
            case ast.BoolOp(op=op, values=[left, right, *_]):
                yield between(left, right, "or" if isinstance(op, ast.And) else "and")
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield whole(node, f"({ast.get_source_segment(source, operand)})")
            case ast.BinOp(left=left, op=op, right=right) if type(op) in SUMS:
                yield between(left, right, SUMS[type(op)])
            case ast.Constant(value=bool() as value):
                yield whole(node, str(not value))
            case ast.Constant(value=int() as value):
                yield whole(node, str(value + 1))
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
                yield whole(test, f"(not ({ast.get_source_segment(source, test)}))")
            case ast.Expr(value=ast.Call()):
                yield whole(node, "pass")


def draw(packages: Sequence[str], sample: int, seed: int) -> list[Mutation]:
    """Return a random sample of the changes of some packages that compile."""
    every = [
        mutation
        for package in packages
        for path in sorted((ROOT / "mydata_like" / package).rglob("*.py"))
        for mutation in list_mutations(str(path.relative_to(ROOT)), path.read_text())
    ]
    random.Random(seed).shuffle(every)
    compiled = (it for it in every if _compiles(it.apply((ROOT / it.file).read_text())))
    return sorted(it for _, it in zip(range(sample), compiled, strict=False))


def _compiles(source: str) -> bool:
    try:
        compile(source, "changed", "exec")
    except SyntaxError:
        return False
    return True


def find_tests(file: str, *, flow: bool) -> list[list[str]]:
    """Return the tests that import a module, the other unit tests of its package, and `flow`."""
    name = file.removesuffix(".py").replace("/", ".")
    package = Path(file).parts[1]
    texts = {path: path.read_text() for path in sorted((ROOT / "tests").rglob("test_*.py"))}
    near = [path for path, text in texts.items() if f"{name} import" in text]
    far = [path for path in texts if f"unit/{package}/" in str(path) and path not in near]
    runs = [path for path in texts if flow and path.parent.name == "flow" and path not in near]
    quick = sorted(near, key=lambda path: "unit" not in path.parts)
    return [[str(path.relative_to(ROOT)) for path in part] for part in (quick, far, runs) if part]


def find_notice(mutation: Mutation, folder: Path, *, flow: bool) -> str:
    """Apply a change to the copy of the project; return which tests noticed it, empty if none."""
    target = folder / mutation.file
    source = target.read_text()
    target.unlink()  # the copy shares its files with the project
    target.write_text(mutation.apply(source))
    try:
        environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
        for tests in find_tests(mutation.file, flow=flow):
            command = [sys.executable, "-m", "pytest", "-qx", "-p", "no:cacheprovider", *tests]
            try:
                ended = subprocess.run(
                    command, cwd=folder, env=environment, capture_output=True, timeout=LIMIT
                )
            except subprocess.TimeoutExpired:
                return "too slow"
            if ended.returncode:
                lines = ended.stdout.decode(errors="replace").splitlines()
                failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
                return failed[0] if failed else lines[-1] if lines else "no output"
    finally:
        target.write_text(source)
    return ""


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Try a sample; print each change that no test noticed, and the shares."""
    parser = argparse.ArgumentParser(prog="python -m tests.trials.mutations", description=__doc__)
    parser.add_argument("--sample", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--packages", default=PACKAGES)
    parser.add_argument("--flow", action="store_true")
    options = parser.parse_args(arguments)
    chosen = draw(options.packages.split(","), options.sample, options.seed)
    tried: Counter[str] = Counter()
    noticed: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="mutations-") as name:
        folder = Path(name)
        for path in ROOT.iterdir():
            if path.name not in LEFT_OUT and not path.name.startswith(".mypy"):
                subprocess.run(["cp", "-a", path, folder], check=True)
        for mutation in chosen:
            package = Path(mutation.file).parts[1]
            found = find_notice(mutation, folder, flow=options.flow)
            tried[package] += 1
            noticed[package] += bool(found)
            what = mutation.describe((ROOT / mutation.file).read_text())
            _print(f"{found or 'NOT NOTICED'} | {what}")
    for package, count in tried.items():
        _print(f"{package}: {noticed[package]} of {count} noticed")
    _print(f"all: {noticed.total()} of {tried.total()} noticed; seed {options.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
