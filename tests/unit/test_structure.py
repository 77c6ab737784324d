"""No modules import one another, directly or through others."""

import pytest

from tests.structure import Structure


@pytest.mark.slow
def test_no_module_imports_itself_through_others():
    assert Structure().find_circles() == []


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
        ("import mydata_like.three", []),
    ],
    ids=["from the package", "by its name", "in a function", "for the type checker", "none"],
)
def test_a_circle_is_found_where_modules_run(tmp_path, text, circles):
    package = tmp_path / "mydata_like"
    package.mkdir()
    texts = {"one": "from mydata_like.two import thing", "two": text, "three": ""}
    for name, content in texts.items():
        (package / f"{name}.py").write_text(content)

    assert Structure(tmp_path).find_circles() == circles
