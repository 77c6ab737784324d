import pytest

from mydata_like.core.errors import SettingsError
from mydata_like.settings.fields import InvalidSettingsError
from mydata_like.settings.layers import (
    Layer,
    LayerSources,
    ResolvedValue,
    load_settings,
    preview_settings,
    variable_of,
)
from mydata_like.settings.schema import settings_by_key


@pytest.fixture
def sources(tmp_path):
    def build(user="", managed="", environment=None, assignments=()):
        (tmp_path / "settings.toml").write_text(user)
        (tmp_path / "managed.toml").write_text(managed)
        return LayerSources(
            user=tmp_path / "settings.toml",
            managed=tmp_path / "managed.toml",
            environment=environment or {},
            assignments=assignments,
        )

    return build


ALL_LAYERS = {
    "managed": "[server]\nrequests = 2\n",
    "user": "\n[server]\nrequests = 3\n",
    "environment": {"MYDATA_LIKE_SERVER_REQUESTS": "5"},
    "assignments": ["server.requests=6"],
}


@pytest.mark.parametrize(
    ("layers", "value", "winner"),
    [
        ([], 6, Layer.DEFAULT),
        (["managed"], 2, Layer.MANAGED),
        (["managed", "user"], 3, Layer.USER),
        (["managed", "user", "environment"], 5, Layer.ENVIRONMENT),
        (list(ALL_LAYERS), 6, Layer.OPTION),
    ],
    ids=lambda value: str(value) if isinstance(value, Layer) else "",
)
def test_the_later_layer_wins(sources, layers, value, winner):
    loaded = load_settings(sources(**{layer: ALL_LAYERS[layer] for layer in layers}))

    assert loaded.settings.server.requests == value
    assert loaded.explain("server.requests").winner.source == winner


def test_every_layer_is_explained_with_its_place(sources, tmp_path):
    entry = load_settings(sources(**ALL_LAYERS)).explain("server.requests")

    assert entry.given == (
        ResolvedValue(Layer.DEFAULT, 6),
        ResolvedValue(Layer.MANAGED, 2, str(tmp_path / "managed.toml"), 2),
        ResolvedValue(Layer.USER, 3, str(tmp_path / "settings.toml"), 3),
        ResolvedValue(Layer.ENVIRONMENT, 5, "MYDATA_LIKE_SERVER_REQUESTS"),
        ResolvedValue(Layer.OPTION, 6, "--set"),
    )
    assert entry.winner is entry.given[-1]


def test_an_empty_environment_variable_is_a_value(sources):
    found = sources(
        user='[instrument]\nname = "A"\n', environment={"MYDATA_LIKE_INSTRUMENT_NAME": ""}
    )

    assert load_settings(found).settings.instrument.name == ""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("*.tif, *.raw", ("*.tif", "*.raw")),
        ('["a,b", "c"]', ("a,b", "c")),
        ("", ()),
        ("[]", ()),
    ],
)
def test_lists_are_given_with_commas_or_as_toml(sources, text, value):
    by_option = load_settings(sources(assignments=[f"filters.includes={text}"]))
    by_variable = load_settings(sources(environment={"MYDATA_LIKE_FILTERS_INCLUDES": text}))

    assert by_option.settings.filters.includes == value
    assert by_variable.settings == by_option.settings


@pytest.mark.parametrize(
    ("assignment", "problem"),
    [
        ("server.urll=x", "--set: server.urll is not a setting; did you mean server.url?"),
        ("server.url", "--set: server.url needs a value: --set section.key=value"),
        ("server.requests=many", "--set: server.requests must be a whole number"),
        ("server.allow_http=maybe", "--set: server.allow_http must be true or false"),
        ("filters.includes=[", "--set: filters.includes must be a list, such as ['a', 'b']"),
        ("=", "--set:  is not a setting"),
    ],
)
def test_a_wrong_option_is_reported(sources, assignment, problem):
    with pytest.raises(InvalidSettingsError) as raised:
        load_settings(sources(assignments=[assignment]))

    assert [str(entry) for entry in raised.value.problems] == [problem.replace(":  ", ": ")]


def test_all_problems_of_all_layers_are_reported_at_once(sources, tmp_path):
    found = sources(
        managed="[servr]\n[locked]\nkeys = ['sever.*']\n",
        user='[server]\nurl = "ftp://a"\nnope = 1\n[data]\nlayout = 3\n',
        environment={"MYDATA_LIKE_TRANSFER_CHANNELS": "-1"},
        assignments=["x.y=1"],
    )

    with pytest.raises(InvalidSettingsError) as raised:
        load_settings(found)

    user = tmp_path / "settings.toml"
    assert {(p.key, p.origin, p.line) for p in raised.value.problems} == {
        ("servr", str(tmp_path / "managed.toml"), 1),
        ("locked.keys", str(tmp_path / "managed.toml"), 0),
        ("server.url", str(user), 2),
        ("server.nope", str(user), 3),
        ("data.layout", str(user), 5),
        ("transfer.channels", "MYDATA_LIKE_TRANSFER_CHANNELS", 0),
        ("x.y", "--set", 0),
    }
    assert f"{user}, line 2: server.url must begin with https://" in str(raised.value)


LOCKED = (
    '[server]\nurl = "https://a.org"\n[locked]\nkeys = ["server.url", "transfer.*"]\nby = "IT"\n'
)


def test_a_locked_setting_keeps_the_managed_value_with_a_warning(sources, tmp_path):
    found = sources(
        managed=LOCKED,
        user='[server]\nurl = "https://b.org"\n',
        environment={"MYDATA_LIKE_TRANSFER_CHANNELS": "9"},
    )

    loaded = load_settings(found)

    locker = f"IT ({tmp_path / 'managed.toml'})"
    assert loaded.settings.server.url == "https://a.org"
    assert loaded.settings.transfer.channels == 0
    assert loaded.explain("transfer.channels").locked_by == locker
    assert loaded.explain("server.username").locked_by == ""
    assert loaded.warnings == (
        f"server.url in {tmp_path / 'settings.toml'}, line 2 is ignored: it is locked by {locker}.",
        f"transfer.channels in MYDATA_LIKE_TRANSFER_CHANNELS is ignored: it is locked by {locker}.",
    )


def test_a_wrong_value_of_a_locked_setting_does_no_harm(sources):
    loaded = load_settings(sources(managed=LOCKED, user="[server]\nurl = 3\n"))

    assert loaded.settings.server.url == "https://a.org"


def test_an_option_cannot_set_a_locked_setting(sources):
    with pytest.raises(SettingsError, match=r"server.url is locked by IT") as raised:
        load_settings(sources(managed=LOCKED, assignments=["server.url=https://c.org"]))

    assert raised.value.problem.code == "settings.locked"


@pytest.mark.parametrize("value", ["https://c.org", None])
def test_a_change_of_a_locked_setting_is_refused(sources, value):
    with pytest.raises(SettingsError, match=r"server.url is locked by IT"):
        preview_settings(sources(managed=LOCKED), {"server.url": value})


def test_a_preview_writes_nothing(sources, tmp_path):
    found = sources(user="[server]\nrequests = 3\n")

    loaded = preview_settings(found, {"server.requests": None, "transfer.channels": 5})

    assert loaded.settings.server.requests == 6
    assert loaded.settings.transfer.channels == 5
    assert (tmp_path / "settings.toml").read_text() == "[server]\nrequests = 3\n"


def test_a_broken_managed_file_does_not_open_its_locks(sources):
    with pytest.raises(InvalidSettingsError, match=r"managed\.toml, line 1: is not TOML"):
        load_settings(sources(managed="[locked\n", user='[server]\nurl = "https://b.org"\n'))


def test_a_mistyped_variable_is_reported_and_others_are_left_alone(sources):
    environment = {
        "MYDATA_LIKE_SEVER_URL": "x",
        "MYDATA_LIKE_API_KEY": "secret",
        "MYDATA_LIKE_HOME": "/x",
        "PATH": "/bin",
    }

    assert load_settings(sources(environment=environment)).warnings == (
        "MYDATA_LIKE_SEVER_URL is not a setting; did you mean MYDATA_LIKE_SERVER_URL?",
    )


def test_an_invalid_character_of_the_environment_is_reported(sources):
    found = sources(environment={"MYDATA_LIKE_INSTRUMENT_NAME": "A\udcff"})

    with pytest.raises(InvalidSettingsError, match="MYDATA_LIKE_INSTRUMENT_NAME"):
        load_settings(found)


def test_every_setting_has_its_own_variable():
    assert len({variable_of(key) for key in settings_by_key()}) == len(settings_by_key())


def test_a_value_of_an_earlier_version_counts_as_the_one_in_its_place(sources):
    loaded = load_settings(sources(user='[transfer]\nssh = "system"\n'))

    assert loaded.settings.transfer.ssh == "paramiko"
    (warning,) = loaded.warnings
    assert loaded.former == loaded.warnings
    assert '"system"' in warning
    assert "settings.toml, line 2" in warning
    assert '"paramiko" is used instead' in warning


def test_an_unknown_key_cannot_be_explained(sources):
    with pytest.raises(SettingsError, match=r"did you mean server\.url"):
        load_settings(sources()).explain("server.ulr")
