from typing import Annotated

from mydata_like.settings.about import About, describe
from mydata_like.settings.text import format_value


def test_a_secret_setting_is_never_shown():
    annotation = Annotated[str, About("Password", "The password.", secret=True)]

    assert format_value(describe("proxy.password", annotation, ""), "hunter2") == "***"
