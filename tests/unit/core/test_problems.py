"""Every code that the program can report is in the table, and every code in the table is used."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from mydata_like.core.problems import INTENDED, PROBLEMS, find_problem_info
from mydata_like.settings.schema import settings_by_key
from mydata_like.settings.server_layer import FORBIDDEN

pytestmark = [pytest.mark.slow, pytest.mark.structure]  # all source files are read

PROGRAM = Path(__file__).parents[3] / "mydata_like"
CODE = re.compile(r"[a-z][a-z0-9-]*\.[a-z-]+")
FILE = re.compile(r".+\.(?:ini|json|txt)")
FAMILIES = {code.partition(".")[0] for code in PROBLEMS}
LOCKED = "locked.keys"  # of the settings file: a key in the place of a code


def test_every_code_that_is_raised_is_in_the_table():
    raised = {text for tree in read_modules() for text in find_raised(tree)} - {LOCKED}

    assert len(raised) > 100
    assert raised - PROBLEMS.keys() == set(), "add it to core/problems.py, then `make pages`"


def test_every_other_literal_that_looks_like_a_code_is_in_the_table():
    literals = {text for tree in read_modules() for text in find_literals(tree)}
    unknown = {
        text
        for text in literals - PROBLEMS.keys() - settings_by_key().keys()
        if text.partition(".")[0] in FAMILIES and not is_file_or_module(text)
    }

    assert unknown == set(), "add it to core/problems.py, then `make pages`"


def test_every_code_of_the_table_is_raised():
    modules = read_modules()
    raised = {text for tree in modules for text in find_raised(tree)}
    named = {text for tree in modules for text in find_named(tree)}

    assert PROBLEMS.keys() - raised - (named - settings_by_key().keys()) == set()


def test_every_reason_to_skip_says_whether_that_is_intended():
    said = {code for code, info in PROBLEMS.items() if info.intended is not None}

    assert said == {code for code in PROBLEMS if code.startswith("skipped.")}
    assert "skipped.pattern" in INTENDED
    assert "skipped.owner" not in INTENDED


def test_settings_open_at_settings_that_exist():
    keys = {info.setting for info in PROBLEMS.values() if info.setting}

    assert keys - settings_by_key().keys() == set()


def test_every_filter_that_the_server_may_set_names_what_it_skips():
    """Otherwise, what the server excludes counts as what the user intended."""
    allowed = {
        key
        for key in settings_by_key()
        if key.startswith("filters.") and key not in (*FORBIDDEN, "filters.settle_seconds")
    }

    assert allowed == {key for problem in PROBLEMS.values() for key in problem.filters}


def test_every_meaning_is_a_sentence():
    meanings = {code: info.meaning for code, info in PROBLEMS.items()}

    assert {
        code for code, text in meanings.items() if not re.fullmatch("[A-Z].+[.]", text)
    } == set()


def test_an_unknown_code_is_in_no_way_intended_and_can_be_tried_again():
    info = find_problem_info("brand.new")

    assert (info.fixer.name, info.action.name, info.intended) == ("USER", "TRY_AGAIN", None)


@cache
def read_modules() -> list[ast.Module]:
    """Return the syntax trees of all modules but the table."""
    paths = set(PROGRAM.rglob("*.py")) - {PROGRAM / "core" / "problems.py"}
    return [ast.parse(path.read_text("utf-8")) for path in sorted(paths)]


def find_raised(tree: ast.Module) -> Iterator[str]:
    """Yield the literals that are codes by their place: what a problem or an error is made of."""
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        for code in find_codes(node):
            yield from find_literals(constants.get(code.id, code) if is_name(code) else code)


def find_codes(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.Call(func=ast.Name(id="Problem"), args=[code, *_]):
            yield code
        case ast.keyword(arg="code", value=code):
            yield code
        case ast.Assign(targets=[ast.Name(id="code")], value=code):
            yield code


def find_literals(tree: ast.AST) -> Iterator[str]:
    """Yield the literals that may be codes."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str() as text) if CODE.fullmatch(text):
                yield text


def find_named(tree: ast.AST) -> Iterator[str]:
    """Yield the literals that may be codes, but for those that are only asked for."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.Compare | ast.Set | ast.Tuple):
            yield from find_literals(node) if isinstance(node, ast.Constant) else find_named(node)


def is_name(code: ast.expr) -> bool:
    return isinstance(code, ast.Name)


def is_file_or_module(text: str) -> bool:
    module = PROGRAM / f"{text.replace('.', '/')}.py"
    return bool(FILE.fullmatch(text)) or module.is_file()
