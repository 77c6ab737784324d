"""Measure the structure of the code: modules, lines, imports, names.

`python -m tests.structure [directory]` prints the figures, and what they were at 4b686c66. With
`--sizes` it prints the table of sizes for `tests/sizes.toml`, with `--route` the way of one tiny
file, and with `--list` all modules with their first sentence. The source is only parsed, not
imported (except for `--route`), so it works in any directory that contains the package.
"""

import ast
import io
import re
import statistics
import sys
import tokenize
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from pathlib import Path

PACKAGE = "mydata_like"
ROOT = Path(__file__).parents[1]
BUDGET = Path(__file__).with_name("sizes.toml")
SLACK = 0.03  # share of a figure by which a package may be smaller
SHORT = 3  # lines of a module that does not count as one
OTHER_CODE = ("benchmarks", "packaging")  # folders of unit tests for what is not in the package
# References in a comment that make a statement about a library or a standard verifiable.
EVIDENCE = re.compile(r"\b(?:\d+\.\d+|RFC ?\d+|CVE-\d|https?://|bug|issue)", re.IGNORECASE)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOCATED = (ast.stmt, ast.expr, ast.excepthandler, ast.arg, ast.keyword, ast.alias, ast.pattern)
IMPORTS = (ast.Import, ast.ImportFrom)
# At 4b686c66, as this program counts.
THEN = {
    "lines of the product": 83_950,
    "modules of more than 3 lines": 331,
    "lines of code": 60_861,
    "% of the lines in docstrings": 10.0,
    "lines of tests": 74_786,
    "% of the product's": 89.1,
    "functions": 6_614,
    "lines of a function, median": 6,
    "lines of a function, 90 %": 16,
    "lines of a function, longest": 57,
    "private functions used in one place": 1_776,
    "lines in these": 15_771,
    "words in docs": 80_259,
    "words in the log of measurements": 14_303,
    "files of unit tests": 194,
    "of them without a module's name": 83,
    "import depth": 31,
    "circles of imports": 0,
    "comments with evidence per 1,000 lines": 0.7,
}
TYPE_CHECKING = ("TYPE_CHECKING", "typing.TYPE_CHECKING")


@dataclass(frozen=True)
class Module:
    """One source file: its dotted name and its syntax tree."""

    name: str
    path: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def short_name(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def summary(self) -> str:
        """The first paragraph of its docstring, on one line."""
        text = ast.get_docstring(self.tree) or ""
        return " ".join(text.partition("\n\n")[0].split())

    @property
    def classes(self) -> list[str]:
        return [node.name for node in self.tree.body if isinstance(node, ast.ClassDef)]

    @cached_property
    def code(self) -> str:
        """The source without comments and docstrings."""
        tree = ast.parse(self.text)
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list) and not isinstance(node, ast.Lambda):
                prose = [it for it in body if isinstance(it, ast.Expr) and _is_text(it.value)]
                body[:] = [it for it in body if it not in prose] or [ast.Pass()]
        return ast.unparse(tree)

    def count_code(self) -> int:
        """Return the number of lines on which a node of the syntax tree begins or ends.

        Docstrings, also of attributes, do not count; neither do blank lines and comments.
        """
        prose: set[int] = set()
        code: set[int] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Expr) and _is_text(node.value):
                prose.update(range(node.lineno, (node.end_lineno or 0) + 1))
            if isinstance(node, LOCATED):
                code |= {node.lineno, node.end_lineno or node.lineno}
        return len(code - prose)

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    def count_docstring_lines(self) -> int:
        """Return the number of lines in the docstrings of the module, its classes and functions."""
        return sum(
            (node.body[0].end_lineno or 0) - node.body[0].lineno + 1
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node, clean=False)
        )

    @cached_property
    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        return [node for node in ast.walk(self.tree) if isinstance(node, FUNCTIONS)]

    def find_used_once(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Return the private functions whose name occurs once in the module."""
        names = Counter(
            node.id if isinstance(node, ast.Name) else node.attr
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Name | ast.Attribute)
        )
        return [
            it
            for it in self.functions
            if it.name.startswith("_") and not it.name.startswith("__") and names[it.name] == 1
        ]

    def comments(self) -> dict[int, str]:
        """Return the comments by line."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return {token.start[0]: token.string for token in tokens if token.type == tokenize.COMMENT}

    def find_unexplained_imports(self) -> list[str]:
        """Return the imports in functions without a comment in their lines or in the line above.

        A comment is for all imports that follow one another.
        """
        comments = self.comments()
        found = []
        for block in _find_blocks_of_functions(self.tree):
            for is_import, nodes in groupby(block, lambda it: isinstance(it, IMPORTS)):
                group = list(nodes)
                lines = range(group[0].lineno - 1, (group[-1].end_lineno or 0) + 1)
                if is_import and comments.keys().isdisjoint(lines):
                    found += map(ast.unparse, group)
        return found


class Structure:
    """All modules of the program in a directory."""

    def __init__(self, root: Path = ROOT) -> None:
        self.modules = {module.name: module for module in _read_modules(root)}
        self.root = root

    @cached_property
    def vocabulary(self) -> list[str]:
        """The words of the vocabulary, repeated if defined more than once."""
        return _read_vocabulary(self.root / "docs" / "vocabulary.md")

    def find_imports(self, module: Module) -> set[str]:
        """Return the modules of the program that it imports at run time, also in functions."""
        found: set[str] = set()
        for node in _walk_without_type_checking(module.tree):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    found.add(inner if inner in self.modules else node.module)
        return found & self.modules.keys()

    @cached_property
    def graph(self) -> Mapping[str, set[str]]:
        """The imports of each module at run time, also in functions."""
        return {name: self.find_imports(module) for name, module in self.modules.items()}

    def find_circles(self) -> list[list[str]]:
        """Return the groups of modules that import one another, directly or indirectly."""
        return [
            sorted(group)
            for group in _find_components(self.graph)
            if len(group) > 1 or group & set().union(*(self.graph[name] for name in group))
        ]

    def measure_depth(self) -> int:
        """Return the length of the longest chain of imports; a circle counts as one module."""
        groups = _find_components(self.graph)
        group_of = {name: number for number, group in enumerate(groups) for name in group}

        @lru_cache(None)
        def depth(number: int) -> int:
            below = {group_of[target] for name in groups[number] for target in self.graph[name]}
            return 1 + max((depth(other) for other in below - {number}), default=0)

        return max(map(depth, range(len(groups))))

    def find_shared_modules(self) -> dict[str, list[str]]:
        """Return names that two or more modules share, without packages."""
        found = defaultdict(list)
        for module in self.modules.values():
            if not module.is_package and not module.short_name.startswith("__"):
                found[module.short_name].append(module.name)
        return {name: where for name, where in sorted(found.items()) if len(where) > 1}

    def find_shared_classes(self) -> dict[str, list[str]]:
        """Return names that two or more public classes share."""
        found = defaultdict(list)
        for module in self.modules.values():
            for name in module.classes:
                if not name.startswith("_"):
                    found[name].append(module.name)
        return {name: where for name, where in sorted(found.items()) if len(where) > 1}

    def count_packages(self) -> dict[str, tuple[int, int]]:
        """Return the lines of code and the modules of each package; `entry` is what is above them.

        Modules of up to three lines do not count: a package may need them.
        """
        found: dict[str, tuple[int, int]] = {}
        for module in self.modules.values():
            parts = module.path.relative_to(self.root).parts
            package = parts[1] if len(parts) > 2 else "entry"
            lines, modules = found.get(package, (0, 0))
            found[package] = lines + module.count_code(), modules + (module.lines > SHORT)
        return dict(sorted(found.items()))

    def figures(self) -> dict[str, float]:
        """Return the figures, each with its name."""
        modules = list(self.modules.values())
        lines = sum(module.lines for module in modules)
        tests = sum(_count_lines(path) for path in (self.root / "tests").rglob("*.py"))
        sizes = sorted(measure_function(it) for module in modules for it in module.functions)
        once = [it for module in modules for it in module.find_used_once()]
        evidence = sum(
            bool(EVIDENCE.search(text)) for module in modules for text in module.comments().values()
        )
        return {
            "lines of the product": lines,
            f"modules of more than {SHORT} lines": sum(module.lines > SHORT for module in modules),
            "lines of code": sum(module.count_code() for module in modules),
            "% of the lines in docstrings": share(
                sum(module.count_docstring_lines() for module in modules), lines
            ),
            "lines of tests": tests,
            "% of the product's": share(tests, lines),
            "functions": len(sizes),
            "lines of a function, median": statistics.median(sizes),
            "lines of a function, 90 %": sizes[len(sizes) * 9 // 10],
            "lines of a function, longest": sizes[-1],
            "private functions used in one place": len(once),
            "lines in these": sum(map(measure_function, once)),
            "words in docs": sum(_count_words(page) for page in self._find_pages("*.md")),
            "words in the log of measurements": sum(
                _count_words(page) for page in self._find_pages("measurements.md")
            ),
            "files of unit tests": len(self.find_unit_tests()),
            "of them without a module's name": len(self.find_unnamed_tests()),
            "import depth": self.measure_depth(),
            "circles of imports": len(self.find_circles()),
            "comments with evidence per 1,000 lines": round(evidence / lines * 1000, 1),
        }

    def _find_pages(self, pattern: str) -> Iterator[Path]:
        return (self.root / "docs").rglob(pattern)

    def find_unit_tests(self) -> list[Path]:
        """Return the files of unit tests in the folders of packages, relative to that of all."""
        folder = self.root / "tests" / "unit"
        return [path.relative_to(folder) for path in sorted(folder.glob("*/**/test_*.py"))]

    def find_unnamed_tests(self) -> list[str]:
        """Return the files of unit tests whose name does not begin with that of a module.

        What follows the name is an aspect of the module, as in `test_lock_lease`.
        """
        return [
            path.as_posix()
            for path in self.find_unit_tests()
            if path.parts[0] not in OTHER_CODE and not self._names_module(path)
        ]

    def _names_module(self, path: Path) -> bool:
        words = path.stem.split("_")[1:]
        package = ".".join((PACKAGE, *path.parent.parts))
        names = ("_".join(words[:count]) for count in range(1, len(words) + 1))
        return any(f"{package}.{name}" in self.modules for name in names)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _count_lines(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())


def _count_words(path: Path) -> int:
    return len(path.read_text("utf-8").split())


def measure_function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of its lines."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def share(part: int, whole: int) -> float:
    """Return a percentage."""
    return round(100 * part / whole, 1)


def read_budget() -> dict[str, tuple[int, int]]:
    """Return the most lines of code and modules that each package may have."""
    table = tomllib.loads(BUDGET.read_text("utf-8"))
    return {package: (lines, modules) for package, (lines, modules) in table.items()}


def compare_sizes(
    sizes: Mapping[str, tuple[int, int]], budget: Mapping[str, tuple[int, int]]
) -> list[str]:
    """Return what is to be done about packages that are above the budget or far below it."""
    found = []
    for package in sorted(sizes.keys() | budget.keys()):
        counts, limits = sizes.get(package, (0, 0)), budget.get(package, (0, 0))
        for count, limit, what in zip(counts, limits, ("lines of code", "modules"), strict=True):
            if count > limit:
                found.append(f"{package}: {count:,} {what}, more than its {limit:,}; make it less")
            elif count < limit * (1 - SLACK):
                found.append(f"{package}: {count:,} {what}; lower its {limit:,} to that")
    return found


def describe_modules(house: Structure) -> Iterator[str]:
    """Yield a heading for each package, and a line for each module: its name and its docstring."""
    package = ""
    for module in house.modules.values():
        parts = module.name.split(".")
        if len(parts) < 2:
            continue
        if parts[1] != package:
            package = parts[1]
            yield f"\n### {package}\n\n"
        if not module.is_package:
            name = "/".join(parts[1:])
            yield f"- `{name}` - {module.summary}\n"
    yield "\n"


def find_repeated(words: list[str]) -> list[str]:
    """Return the words that occur more than once."""
    return sorted(word for word, times in Counter(words).items() if times > 1)


def _read_modules(root: Path) -> Iterator[Module]:
    for path in sorted((root / PACKAGE).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        yield Module(name, path, path.read_text("utf-8"))


def _read_vocabulary(page: Path) -> list[str]:
    """Return the words that a page defines, repeated if defined more than once."""
    items = re.findall(r"^- \*\*([^*]+)\*\*: ", page.read_text("utf-8"), re.MULTILINE)
    return [word.strip() for item in items for word in item.split(",")]


def _walk_without_type_checking(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield all nodes except those below `if TYPE_CHECKING:`, which never runs."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test) in TYPE_CHECKING:
            left.extend(node.orelse)
        else:
            left.extend(ast.iter_child_nodes(node))


def _find_blocks_of_functions(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield every list of statements inside functions, once."""
    functions = [it for it in ast.walk(tree) if isinstance(it, FUNCTIONS)]
    inside = {id(node): node for function in functions for node in ast.walk(function)}
    for node in inside.values():
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                yield value


def _find_components(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected components (Tarjan's algorithm)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[set[str]] = []

    def visit(name: str) -> None:
        order[name] = lowest[name] = len(order)
        stack.append(name)
        for target in sorted(graph[name]):
            if target not in order:
                visit(target)
                lowest[name] = min(lowest[name], lowest[target])
            elif target in stack:
                lowest[name] = min(lowest[name], order[target])
        if lowest[name] == order[name]:
            place = stack.index(name)
            found.append(set(stack[place:]))
            del stack[place:]

    for name in graph:
        if name not in order:
            visit(name)
    return found


def print_figures(root: Path) -> None:
    """Print the figures of this or another directory, and what they were."""
    for name, value in Structure(root).figures().items():
        then = f"{THEN[name]:,}" if name in THEN else ""
        sys.stdout.write(f"{name:40} {then:>10} {value:>10,}\n")


def main() -> None:
    """Print the figures, the sizes, the modules, or the way of one file."""
    match sys.argv[1:]:
        case ["--list"]:
            sys.stdout.writelines(describe_modules(Structure()))
        case ["--sizes"]:
            for package, counts in Structure().count_packages().items():
                sys.stdout.write(f"{package} = {list(counts)}\n")
        case ["--route"]:
            # It loads the program and the servers.
            from tests.route import print_route

            print_route()
        case words:
            sys.stdout.write(f"{'':40} {'4b686c66':>10} {'now':>10}\n")
            print_figures(Path(words[0]) if words else ROOT)


if __name__ == "__main__":
    main()
