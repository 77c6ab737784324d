"""Names are unique, there are no circular imports, and every module says what it is for."""

import pytest

from tests.structure import (
    ROOT,
    Structure,
    compare_sizes,
    describe_modules,
    find_repeated,
    read_budget,
)

# Modules that import in their functions, as their docstrings explain.
LATE_IMPORTS = {
    "mydata_like.__main__",
    "mydata_like.gui.launch",
    "mydata_like.selftest.checks",
}


@pytest.fixture(scope="module")
def house() -> Structure:
    return Structure()


@pytest.mark.slow
@pytest.mark.structure
def test_no_module_imports_itself_through_others(house):
    assert house.find_circles() == []


@pytest.mark.slow
@pytest.mark.structure
def test_no_two_modules_share_a_name(house):
    assert house.find_shared_modules() == {}


@pytest.mark.slow
@pytest.mark.structure
def test_no_two_public_classes_share_a_name(house):
    assert house.find_shared_classes() == {}


def test_no_word_of_the_vocabulary_is_defined_twice(house):
    assert len(house.vocabulary) > 50
    assert find_repeated(house.vocabulary) == []


@pytest.mark.slow
@pytest.mark.structure
def test_imports_in_functions_have_a_reason(house):
    """Import at the top of the module, or name the reason in a comment above the import."""
    found = {name: module.find_unexplained_imports() for name, module in house.modules.items()}

    assert {name for name, imports in found.items() if imports} <= LATE_IMPORTS, found


@pytest.mark.slow
@pytest.mark.structure
def test_the_list_of_modules_says_of_each_what_it_is_for(house):
    lines = [line for line in describe_modules(house) if line.startswith("- ")]

    assert len(lines) > 300
    assert [line for line in lines if not line.endswith(".\n") or "` - " not in line] == []


# Files of unit tests about the whole program.
OF_THE_WHOLE = {
    "test_admin.py",
    "test_contracts.py",
    "test_docs.py",
    "test_engine_sentences.py",
    "test_events_page.py",
    "test_fuzz_targets.py",
    "test_guide.py",
    "test_settings_pages.py",
    "test_start_up.py",
    "test_structure.py",
    "test_structure_transports.py",
    "test_workarounds.py",
}


def test_unit_tests_are_named_as_the_module_that_they_test(house):
    """Such as `ssh/test_keys.py` and `ssh/test_keys_hosts.py` for `mydata_like/ssh/keys.py`."""
    whole = {path.name for path in (ROOT / "tests" / "unit").glob("test_*.py")}

    assert house.find_unnamed_tests() == []
    assert whole == OF_THE_WHOLE


@pytest.mark.slow
@pytest.mark.structure
def test_no_package_is_larger_than_its_budget_or_far_below_it(house):
    """Edit `tests/sizes.toml`; `python -m tests.structure --sizes` prints its table."""
    assert compare_sizes(house.count_packages(), read_budget()) == []


@pytest.mark.parametrize(
    ("counts", "found"),
    [
        ((1000, 10), []),
        ((971, 10), []),
        ((1001, 10), ["one: 1,001 lines of code, more than its 1,000; make it less"]),
        ((969, 10), ["one: 969 lines of code; lower its 1,000 to that"]),
        ((1000, 11), ["one: 11 modules, more than its 10; make it less"]),
        ((1000, 9), ["one: 9 modules; lower its 10 to that"]),
    ],
    ids=["the same", "little below", "above", "far below", "more modules", "fewer modules"],
)
def test_a_package_may_be_only_a_little_below_its_budget(counts, found):
    assert compare_sizes({"one": counts}, {"one": (1000, 10)}) == found


def test_a_new_package_needs_a_budget():
    assert compare_sizes({"new": (5, 1)}, {}) == [
        "new: 5 lines of code, more than its 0; make it less",
        "new: 1 modules, more than its 0; make it less",
    ]


def test_lines_of_code_are_those_of_the_syntax_tree(tmp_path):
    text = '''"""A module."""

# a comment
class One:
    """A class."""

    first: int
    """An attribute."""

    def two(self):
        """A function."""
        return call(
            1,  # a comment

        )
'''
    (module,) = build_house(tmp_path, one=text).modules.values()

    assert module.count_code() == len(["class", "first", "def", "return", "1", ")"])


def test_unit_tests_without_a_module_of_their_package_are_found(tmp_path):
    found = build_house(tmp_path, **{"ssh/keys": "", "core/hosts": ""})
    for name in ("test_keys", "test_keys_hosts", "test_hosts", "test_keysets"):
        file = tmp_path / "tests" / "unit" / "ssh" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()

    assert found.find_unnamed_tests() == ["ssh/test_hosts.py", "ssh/test_keysets.py"]


def test_private_functions_that_are_used_once_are_found(tmp_path):
    text = "def _once(): ...\ndef _twice(): ...\ndef _never(): ...\n_once(), _twice(), _twice()"
    (module,) = build_house(tmp_path, one=text).modules.values()

    assert [function.name for function in module.find_used_once()] == ["_once"]


@pytest.mark.parametrize(
    ("text", "circles"),
    [
        ("from mydata_like import one", [["mydata_like.one", "mydata_like.two"]]),
        ("import mydata_like.one", [["mydata_like.one", "mydata_like.two"]]),
        (
            "def late():\n    from mydata_like.one import thing",
            [["mydata_like.one", "mydata_like.two"]],
        ),
        ("if TYPE_CHECKING:\n    from mydata_like.one import thing", []),
        ("import mydata_like.two", [["mydata_like.two"]]),
        ("import mydata_like.three", []),
    ],
    ids=["from the package", "by name", "in a function", "for the type checker", "itself", "none"],
)
def test_a_circle_is_found_where_modules_run(tmp_path, text, circles):
    found = build_house(tmp_path, one="from mydata_like.two import thing", two=text, three="")

    assert found.find_circles() == circles


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import one", []),
        ("def late():\n    import one", ["import one"]),
        ("def late():\n    # few need it\n    import one\n    from two import three", []),
        (
            "def late():\n    # few need it\n    import one\n    go()\n    import two",
            ["import two"],
        ),
        ("def late():\n    import one  # few need it", []),
        (
            "async def late():\n    with one:\n        from two import three",
            ["from two import three"],
        ),
        (
            "class One:\n    def late(self):\n        if two:\n            import three",
            ["import three"],
        ),
    ],
    ids=[
        "at the top",
        "bare",
        "comment above",
        "comment of others",
        "same line",
        "in a block",
        "in a method",
    ],
)
def test_an_import_in_a_function_without_a_comment_is_found(tmp_path, text, found):
    (module,) = build_house(tmp_path, one=text).modules.values()

    assert module.find_unexplained_imports() == found


def test_modules_of_one_name_are_found(tmp_path):
    found = build_house(tmp_path, **{"first/files": "", "second/files": "", "second/names": ""})

    assert found.find_shared_modules() == {
        "files": ["mydata_like.first.files", "mydata_like.second.files"]
    }


def test_public_classes_of_one_name_are_found(tmp_path):
    text = "class File: ...\nclass _Line: ..."
    found = build_house(tmp_path, one=text, two=text)

    assert found.find_shared_classes() == {"File": ["mydata_like.one", "mydata_like.two"]}


def build_house(root, **modules):
    for name, text in modules.items():
        file = root / "mydata_like" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return Structure(root)
