import os
from pathlib import Path

import pytest

from mydata_like.core.errors import SettingsError
from mydata_like.settings.fields import InvalidSettingsError
from mydata_like.settings.settings_file import edit_settings_file, edit_text, read_settings_file
from tests.privileges import needs_links
from tests.umasks import has_mode


@pytest.fixture
def path(tmp_path):
    return tmp_path / "settings.toml"


def read(path, content, **options):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_settings_file(path, **options)


def words(found):
    return [(problem.key, problem.line, problem.message) for problem in found.problems]


def test_a_file_that_does_not_exist_says_nothing(path):
    assert read_settings_file(path).values == {}
    assert not read_settings_file(path).problems


def test_each_value_knows_its_line(path):
    found = read(
        path,
        '# mine\nserver.url = "https://a.org"\n\n[filters]\nincludes = [\n  "[data]",\n'
        '  "url = 3",\n]\nowner = """\nurl = 1"""\n["transfer"]\n"channels" = 4 # x\n',
    )

    assert found.lines == {
        "server.url": 2,
        "filters.includes": 5,
        "filters.owner": 9,
        "transfer.channels": 12,
    }


def test_all_unknown_keys_are_reported_with_the_nearest_known_one(path):
    found = read(
        path,
        'colour = 1\n[server]\nurll = "x"\napi_key = "hidden-key"\n'
        "[transfr]\nchannels = 1\n[data]\nzzz = 1\n",
    )

    assert words(found) == [
        ("colour", 1, "is not a section"),
        ("server.urll", 3, "is not a setting; did you mean server.url?"),
        (
            "server.api_key",
            4,
            "is a secret, not a setting: store it with `mydata-like settings set-key`",
        ),
        ("transfr", 5, "is not a section; did you mean transfer?"),
        ("data.zzz", 8, "is not a setting"),
    ]
    assert "hidden-key" not in str(found.problems)


def test_a_value_where_a_section_belongs_is_reported(path):
    assert words(read(path, "server = 3\n")) == [
        ("server", 1, "is a section: write [server] and its settings below")
    ]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("[server]\nurl = \n", 2),
        ('[server]\nurl = "a\nusername = "b"\n', 2),
        ("[server\n", 1),
        ("[server]\na = 1\na = 2\n", 3),
        ("[data]\n\nx = [1,\n", 4),
        (b'[server]\nurl = "\xff"\n', 2),
        ("a = 1" + "0" * 5000, 1),
    ],
    ids=["no value", "open text", "open header", "twice", "open list", "no text", "huge"],
)
def test_a_broken_file_is_reported_with_its_line(path, content, line):
    found = read(path, content)

    assert [problem.line for problem in found.problems] == [line]
    assert found.values == {}


@pytest.mark.parametrize(
    "content", ["x = " + "[" * 100_000, "#" * 2_000_000], ids=["deep", "large"]
)
def test_an_absurd_file_is_a_problem_and_no_crash(path, content):
    assert len(read(path, content).problems) == 1


@pytest.mark.parametrize(
    "statement",
    ["includes = [\n%s]" % ('"a",\n' * 20_000), 'includes = """\n%s"""' % ("\n" * 20_000)],
    ids=["list", "text"],
)
def test_a_statement_of_very_many_lines_is_read_in_a_moment(path, statement):
    found = read(path, f"[filters]\n{statement}\n[server]\nurl = 'https://a.org'\n")

    assert found.lines == {"filters.includes": 2, "server.url": statement.count("\n") + 4}


def test_a_key_of_very_many_parts_is_a_problem_and_no_crash(path):
    assert words(read(path, "[server]\nx" + ".a" * 5000 + " = 1\n"))[0][0] == "server.x"


def test_a_folder_in_place_of_the_file_is_a_problem(path):
    path.mkdir()

    assert "is a folder" in read_settings_file(path).problems[0].message


def test_byte_order_mark_and_carriage_returns_do_not_matter(path):
    found = read(path, b'\xef\xbb\xbf[server]\r\nurl = "https://a.org"\r\n[x]\r\n')

    assert found.values == {"server.url": "https://a.org"}
    assert found.lines == {"server.url": 2}
    assert words(found) == [("x", 3, "is not a section")]


def test_only_a_managed_file_locks(path):
    content = '[locked]\nkeys = ["server.*"]\nby = "IT"\n'

    assert words(read(path, content)) == [("locked", 1, "is not a section")]
    managed = read(path, content, managed=True)
    assert (managed.locks, managed.locked_by) == (("server.*",), "IT")


@pytest.mark.parametrize(
    ("content", "key"),
    [
        ("[locked]\nkeys = 'server.*'\n", "locked.keys"),
        ("[locked]\nkeys = [1]\n", "locked.keys"),
        ("[locked]\nby = 3\n", "locked.by"),
        ("[locked]\nkey = []\n", "locked.key"),
        ("locked = 3\n", "locked"),
    ],
)
def test_a_wrong_lock_is_a_problem_and_not_an_open_door(path, content, key):
    assert [problem.key for problem in read(path, content, managed=True).problems] == [key]


def test_an_edit_keeps_comments_order_and_line_ends(path):
    path.write_bytes(b"# top\r\n[data] # here\r\n# why\r\nlayout = 'Dataset' # old\r\n[server]\r\n")

    edit_settings_file(path, {"data.layout": "Email / Dataset", "server.requests": 2})

    assert path.read_bytes() == (
        b'# top\r\n[data] # here\r\n# why\r\nlayout = "Email / Dataset" # old\r\n'
        b"[server]\r\nrequests = 2\r\n"
    )


def test_removing_a_key_leaves_the_rest(path):
    path.write_text('[server]\nurl = "a" # x\n# keep\nusername = "b"\n')

    edit_settings_file(path, {"server.url": None, "data.layout": None})

    assert path.read_text() == '[server]\n# keep\nusername = "b"\n'


@pytest.mark.parametrize(
    "text",
    ["server.url = 'a'\n", "server = {url = 'a'}\n", "['server']\n\"url\" = 'a'\n"],
    ids=["dotted", "inline", "quoted"],
)
def test_every_way_of_writing_a_key_can_be_edited(path, text):
    path.write_text(text)

    edit_settings_file(path, {"server.url": "b", "server.username": "c"})

    assert read_settings_file(path).values == {"server.url": "b", "server.username": "c"}


def test_a_new_file_and_its_folder_are_for_the_owner_only(tmp_path):
    path = tmp_path / "new" / "settings.toml"
    umask = os.umask(0)

    try:
        edit_settings_file(path, {"server.requests": 2})
    finally:
        os.umask(umask)

    assert has_mode(path, 0o600)
    assert has_mode(path.parent, 0o700)
    assert [entry.name for entry in path.parent.iterdir()] == ["settings.toml"]


@needs_links
def test_a_link_to_the_file_stays_a_link(path, tmp_path):
    target = tmp_path / "real.toml"
    target.write_text("")
    path.symlink_to(target)

    edit_settings_file(path, {"server.requests": 2})

    assert path.is_symlink()
    assert target.read_text() == "[server]\nrequests = 2\n"


def test_a_broken_file_is_never_overwritten(path):
    path.write_text("[server\n")

    with pytest.raises(InvalidSettingsError, match="line 1"):
        edit_settings_file(path, {"server.requests": 2})

    assert path.read_text() == "[server\n"


def test_a_section_that_is_not_a_table_is_not_edited():
    with pytest.raises(SettingsError, match="cannot be edited"):
        edit_text("server = 3\n", {"server.requests": 2})


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder nobody can write")
def test_a_folder_that_cannot_be_written_is_reported():
    with pytest.raises(SettingsError, match="cannot be written"):
        edit_settings_file(Path("/proc/mydata-like/settings.toml"), {"server.requests": 2})


def test_a_file_that_cannot_be_read_is_not_replaced(path):
    path.mkdir()

    with pytest.raises(SettingsError, match="is a folder"):
        edit_settings_file(path, {"server.requests": 2})
