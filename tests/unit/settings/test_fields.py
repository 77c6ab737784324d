from typing import Annotated

from mydata_like.settings.fields import FieldInfo, describe, format_value


def test_a_secret_setting_is_never_shown():
    annotation = Annotated[str, FieldInfo("Password", "The password.", secret=True)]

    assert format_value(describe("proxy.password", annotation, ""), "hunter2") == "***"
