"""Measures the structure of the code: modules, lines, imports, names.

`python -m tests.structure [directory]` prints the figures.
`python -m tests.structure --list PAGE` writes the list of modules into a page. Nothing is imported:
everything is read from the source, in any directory that contains the package.
"""

import ast
import io
import re
import sys
import textwrap
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

PACKAGE = "mydata_like"
ROOT = Path(__file__).parents[1]
LINE_LENGTH = 100
LIST_BEGINS = "<!-- Made by `make pages` from the docstrings of all modules. -->\n"
LIST_ENDS = "<!-- The end of what is made. -->\n"
# What makes a comment's claim about a library or a standard checkable.
EVIDENCE = re.compile(r"\b(?:\d+\.\d+|RFC ?\d+|CVE-\d|https?://|bug|issue)", re.IGNORECASE)
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

    def count_code(self) -> int:
        """Return the number of lines that are neither empty, comment nor docstring."""
        prose: set[int] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                first = node.body[0] if node.body else None
                if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                    prose.update(range(first.lineno, (first.end_lineno or 0) + 1))
        lines = enumerate(self.text.splitlines(), 1)
        return sum(
            bool(line.strip()) and not line.strip().startswith("#") and number not in prose
            for number, line in lines
        )

    def count_imports(self) -> int:
        """Return the number of lines that import something."""
        return sum(
            (node.end_lineno or node.lineno) - node.lineno + 1
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
        )

    def count_wrapped_imports(self) -> int:
        """Return the same number if the names of an import were wrapped, not one on each line."""
        return sum(
            len(textwrap.wrap(ast.unparse(node), LINE_LENGTH))
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Import | ast.ImportFrom)
        )

    def comments(self) -> Iterator[str]:
        """Yield the comments, one by one."""
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type == tokenize.COMMENT:
                yield token.string


class Structure:
    """All modules of the program in a directory."""

    def __init__(self, root: Path = ROOT) -> None:
        self.modules = {module.name: module for module in _read_modules(root)}
        self.root = root

    @cached_property
    def vocabulary(self) -> list[str]:
        """The words that the vocabulary defines, each as often as it does so."""
        return _read_vocabulary(self.root / "docs" / "vocabulary.md")

    def find_imports(self, module: Module) -> set[str]:
        """Return which modules of the program it imports when it runs, in functions as well."""
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
        """Which modules each module imports when it runs, in functions as well."""
        return {name: self.find_imports(module) for name, module in self.modules.items()}

    def find_circles(self) -> list[list[str]]:
        """Return the groups of modules that import one another, directly or not."""
        return [
            sorted(group)
            for group in _find_components(self.graph)
            if len(group) > 1 or group & set().union(*(self.graph[name] for name in group))
        ]

    def measure_depth(self) -> int:
        """Return how many modules the longest chain of imports has; a circle counts as one."""
        groups = _find_components(self.graph)
        group_of = {name: number for number, group in enumerate(groups) for name in group}

        @lru_cache(None)
        def depth(number: int) -> int:
            below = {group_of[target] for name in groups[number] for target in self.graph[name]}
            return 1 + max((depth(other) for other in below - {number}), default=0)

        return max(map(depth, range(len(groups))))

    def find_shared_modules(self) -> dict[str, list[str]]:
        """Return module names that stand for two modules or more, packages left out."""
        found = defaultdict(list)
        for module in self.modules.values():
            if not module.is_package and not module.short_name.startswith("__"):
                found[module.short_name].append(module.name)
        return {name: where for name, where in sorted(found.items()) if len(where) > 1}

    def find_shared_classes(self) -> dict[str, list[str]]:
        """Return public class names that stand for two classes or more."""
        found = defaultdict(list)
        for module in self.modules.values():
            for name in module.classes:
                if not name.startswith("_"):
                    found[name].append(module.name)
        return {name: where for name, where in sorted(found.items()) if len(where) > 1}

    def figures(self) -> Iterator[tuple[str, str]]:
        """Yield what is measured, as a name and a value."""
        modules = list(self.modules.values())
        lines = sum(len(module.text.splitlines()) for module in modules)
        evidence = sum(
            bool(EVIDENCE.search(text)) for module in modules for text in module.comments()
        )
        imports = sum(module.count_imports() for module in modules)
        wrapped = sum(module.count_wrapped_imports() for module in modules)
        written = sum(not module.is_package for module in modules)
        yield "modules", f"{len(modules)}"
        yield "modules that are no package", f"{written}"
        yield "lines", f"{lines:,}"
        yield "lines for each of these modules", f"{lines / written:.0f}"
        yield "lines of code", f"{sum(module.count_code() for module in modules):,}"
        yield "lines that import", f"{imports / lines:.1%}"
        yield "the same, names wrapped", f"{wrapped / (lines - imports + wrapped):.1%}"
        yield "import depth", f"{self.measure_depth()}"
        yield "circles of imports", f"{len(self.find_circles())}"
        yield "words of the vocabulary", f"{len(self.vocabulary)}"
        yield "words defined twice", f"{len(find_repeated(self.vocabulary))}"
        yield "module names in use twice", f"{len(self.find_shared_modules())}"
        yield "class names in use twice", f"{len(self.find_shared_classes())}"
        yield "comments with evidence per 1,000 lines", f"{evidence / lines * 1000:.1f}"


def replace_module_list(page: str, house: Structure) -> str:
    """Return the page with its list of modules made again; all other text stays."""
    before, _, rest = page.partition(LIST_BEGINS)
    _, _, after = rest.partition(LIST_ENDS)
    return "".join((before, LIST_BEGINS, *_describe_modules(house), LIST_ENDS, after))


def _describe_modules(house: Structure) -> Iterator[str]:
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
    """Return the words of the tables of a page, each as often as it is defined."""
    cells = re.findall(r"^\| ([^|]+) \|", page.read_text("utf-8"), re.MULTILINE)
    words = (word.strip(" *`") for cell in cells for word in re.split(r"[,>;]", cell))
    return [word for word in words if word and word != "word" and not word.startswith("---")]


def _walk_without_type_checking(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield all nodes but those below `if TYPE_CHECKING:`, which never runs."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test) in TYPE_CHECKING:
            left.extend(node.orelse)
        else:
            left.extend(ast.iter_child_nodes(node))


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


def main() -> None:
    """Print the figures of this directory or of a named one, or write the list of modules."""
    if sys.argv[1:2] == ["--list"]:
        page = Path(sys.argv[2])
        page.write_text(replace_module_list(page.read_text("utf-8"), Structure()), "utf-8")
        return
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    for name, value in Structure(root).figures():
        sys.stdout.write(f"{name:40} {value:>10}\n")


if __name__ == "__main__":
    main()
