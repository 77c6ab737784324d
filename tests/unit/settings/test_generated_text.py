from pathlib import Path

from mydata_like.settings.generated_text import build_reference

PAGE = Path(__file__).parents[3] / "docs" / "settings.md"


def test_the_documentation_page_is_up_to_date():
    assert PAGE.read_text("utf-8") == build_reference()
