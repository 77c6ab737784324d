from mydata_like.settings.fields import FieldInfo, Setting, format_value


def test_a_secret_setting_is_never_shown():
    about = FieldInfo("Password", "The password.", secret=True)

    assert format_value(Setting("proxy.password", str, "", about), "hunter2") == "***"
