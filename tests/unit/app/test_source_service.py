"""What is known of dropped folders before they are carried, and of another's settings."""

import os

import pytest

from mydata_like.app.mydata_import import find_settings_kind, plan_copying
from mydata_like.app.source_service import find_conflicts, preview_sources
from mydata_like.core.errors import Cancelled
from mydata_like.core.extra_sources import Destination, ExtraSource
from mydata_like.core.model import DatasetId, Entry, EntryState, FolderSums
from mydata_like.engine.pipeline import CancelFlag
from mydata_like.settings.fields import InvalidSettingsError
from mydata_like.settings.schema import Data, Filters, Server, Settings
from tests.gui.ledgers import WrittenLedger

PLACE = Destination("", "usb", "day 1")
OLD = 1_600_000_000


@pytest.fixture
def settings(tmp_path, monkeypatch):
    monkeypatch.setenv("MYDATA_LIKE_HOME", str(tmp_path / "home"))
    (tmp_path / "data").mkdir()
    return Settings(
        server=Server(url="https://store.example.org"),
        data=Data(directory=tmp_path / "data"),
        filters=Filters(excludes=("*.tmp",)),
    )


@pytest.fixture
def ledger(settings):
    written = WrittenLedger.of(settings, None)
    yield written.ledger
    written.close()


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "usb" / "day 1"
    for name in ("a.tif", "b.tif", "raw/c.tif", "raw/deep/d.tif", "e.tmp"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"12345")
        os.utime(folder / name, (OLD, OLD))
    (folder / "new.tif").write_bytes(b"1")
    return folder


def preview(settings, *paths):
    looks = preview_sources(settings, None, map(os.fsencode, paths), CancelFlag())
    return [look for look in looks if look.complete]


def test_a_dry_run_reports_what_a_run_would_do(settings, folder):
    (look,) = preview(settings, folder)

    assert look.destination == PLACE
    assert (look.found, look.wanted, look.waiting, look.left, look.safe) == (6, 4, 1, 1, 0)
    assert (look.found_bytes, look.wanted_bytes) == (26, 20)
    assert {code: (it.number, it.example) for code, it in look.reasons.items()} == {
        "waiting.settling": (1, os.fsencode((folder / "new.tif").as_posix())),
        "skipped.pattern": (1, os.fsencode((folder / "e.tmp").as_posix())),
    }
    assert sorted(look.parts) == [(b"", 2, 10), (b"raw", 2, 10)]


def test_what_the_server_has_verified_needs_nothing(settings, ledger, folder):
    key = os.fsencode(folder.as_posix())
    file = Entry(key + b"/a.tif", 5, OLD * 10**9, EntryState.VERIFIED, DatasetId(1))
    ledger.record([file, file._replace(key=key + b"/b.tif", size=4)])
    ledger.record_source(ExtraSource(key, Destination("ada", "Mice", "one")))
    (look,) = preview(settings, folder)

    assert look.remembered
    assert look.destination == Destination("ada", "Mice", "one")
    assert (look.safe, look.safe_bytes, look.wanted) == (1, 5, 3)


def test_what_cannot_be_uploaded_is_reported_and_hinders_nothing_else(settings, folder):
    inside, alone = preview(settings, settings.data.directory, folder / "a.tif")

    assert inside.refusal.code == "source.inside"
    assert (alone.alone, alone.found, alone.destination) == (True, 1, PLACE)


def test_a_look_can_be_ended(settings, folder):
    cancel = CancelFlag()
    looks = preview_sources(settings, None, [os.fsencode(folder)], cancel)
    assert next(looks).found == 0
    cancel.set()

    with pytest.raises(Cancelled):
        list(looks)


def conflicts(settings, *sources):
    return find_conflicts(settings, None, sources)


def test_two_that_would_mix_are_reported(settings):
    one, other = ExtraSource(b"/usb/a", PLACE), ExtraSource(b"/usb/b", PLACE)
    inner = ExtraSource(b"/usb/a/in", PLACE._replace(dataset="in"))
    files = [ExtraSource(b"/usb/a/%d" % number, PLACE, alone=True) for number in range(2)]

    assert [it.kind for it in conflicts(settings, one, other)] == ["same"]
    assert [it.kind for it in conflicts(settings, one, inner)] == ["inside"]
    assert conflicts(settings, *files) == []


def test_what_went_elsewhere_before_or_belongs_to_another_is_reported(settings, ledger):
    ledger.record_source(ExtraSource(b"/usb/a", PLACE))
    ledger.record_folders([FolderSums(b"/usb/b", "day 1", "usb", "", "")])
    moved = ExtraSource(b"/usb/a", PLACE._replace(dataset="day 2"))

    assert [it[:3] for it in conflicts(settings, moved)] == [("elsewhere", b"/usb/a", b"")]
    assert [it[:3] for it in conflicts(settings, ExtraSource(b"/usb/a", PLACE))] == [
        ("taken", b"/usb/a", b"/usb/b")
    ]


def test_the_settings_of_another_installation_can_be_taken_over(tmp_path, settings):
    own, other = tmp_path / "own.toml", tmp_path / "other.toml"
    own.write_text('[server]\nurl = "https://store.example.org"\n')
    other.write_text(
        '[server]\nurl = "https://store.example.org"\n[instrument]\nname = "Scope"\n'
        'uuid = "9d0ff04e-c0d5-11eb-8529-0242ac130003"\n'
    )
    copying = plan_copying(other, own)

    assert find_settings_kind(other) == "ours"
    assert copying.changes == {"instrument.name": "Scope"}


def test_wrong_settings_are_not_taken_over(tmp_path, settings):
    other = tmp_path / "other.toml"
    other.write_text('[transfer]\nchannels = "many"\n')

    with pytest.raises(InvalidSettingsError):
        plan_copying(other, tmp_path / "own.toml")


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("MyData.cfg", "[MyData]\nusername = ada\n", "mydata"),
        ("scope.cfg", "[Camera]\ngain = 3\n", ""),
        ("scope.cfg", "\x00\x01", ""),
        ("scope.toml", "gain = 3\n", ""),
        ("gone.toml", None, ""),
    ],
)
def test_not_every_file_of_such_a_name_has_settings(tmp_path, name, text, kind):
    if text is not None:
        (tmp_path / name).write_text(text)

    assert find_settings_kind(tmp_path / name) == kind
