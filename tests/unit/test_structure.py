"""Names are unique, there are no circular imports, and the list of modules is current."""

import pytest

from tests.structure import ROOT, Structure, find_repeated, replace_module_list

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
def test_no_module_imports_itself_through_others(house):
    assert house.find_circles() == []


@pytest.mark.slow
def test_no_two_modules_share_a_name(house):
    assert house.find_shared_modules() == {}


@pytest.mark.slow
def test_no_two_public_classes_share_a_name(house):
    assert house.find_shared_classes() == {}


def test_no_word_of_the_vocabulary_is_defined_twice(house):
    assert find_repeated(house.vocabulary) == []


@pytest.mark.slow
def test_imports_in_functions_have_a_reason(house):
    """Import at the top of the module, or name the reason in a comment above the import."""
    found = {name: module.find_unexplained_imports() for name, module in house.modules.items()}

    assert {name for name, imports in found.items() if imports} <= LATE_IMPORTS, found


@pytest.mark.slow
def test_the_list_of_modules_is_what_make_pages_writes(house):
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")

    assert page == replace_module_list(page, house), "run make pages"


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
