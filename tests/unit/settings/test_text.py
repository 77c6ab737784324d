from pydantic.fields import FieldInfo

from mydata_like.settings.about import About, describe
from mydata_like.settings.text import format_value


def test_a_secret_setting_is_never_shown():
    field = FieldInfo.from_annotation(str)
    field.metadata.append(About("Password", "The password.", secret=True))

    assert format_value(describe("proxy.password", field), "hunter2") == "***"
