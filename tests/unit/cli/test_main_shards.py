"""What is asked for with `--shard`, and cannot be."""

import pytest
from typer.testing import CliRunner

from mydata_like.app.server_marks import check_shards, without_copy_notices
from mydata_like.app.settings_service import find_places
from mydata_like.cli.main import build_app
from mydata_like.core.data_directory import WHOLE, Shard
from mydata_like.core.errors import Problem, SettingsError
from mydata_like.core.events import Notice
from mydata_like.core.model import Layout
from mydata_like.settings.schema import Data, Instrument, Settings

app = build_app()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("run --shard 5/4", "1/4 is the first of 4"),
        ("run --shard 0/4", "1/4 is the first of 4"),
        ("scan --shard 1", "1/4 is the first of 4"),
        ("run --shard 1/2 --source /tmp", "exclude each other"),
        ("run --shard 1/2 --only folder", "exclude each other"),
        ("scan --shard 1/2 --source /tmp", "exclude each other"),
        ("watch --shard 1/2", "No such option"),
    ],
)
def test_wrong_use_is_refused(words, told):
    result = CliRunner().invoke(app, words.split())

    assert result.exit_code == 2
    assert told in " ".join(result.output.replace("│", " ").split())


@pytest.mark.parametrize(
    ("layout", "uuid", "code"),
    [
        (Layout.DATASET, "u", "shard.one-experiment"),
        (Layout.USERNAME_DATASET, "", "shard.no-identity"),
    ],
)
def test_what_cannot_be_split_is_refused(tmp_path, monkeypatch, layout, uuid, code):
    monkeypatch.setenv("MYDATA_LIKE_HOME", str(tmp_path))
    settings = Settings(instrument=Instrument(uuid=uuid), data=Data(layout=layout))

    with pytest.raises(SettingsError) as caught:
        check_shards(settings, find_places())

    assert caught.value.problem_code == code


@pytest.mark.parametrize(("shard", "told"), [(WHOLE, True), (Shard(1, 2), False)])
def test_shards_may_have_one_identity_on_many_computers(shard, told):
    events = []

    emit = without_copy_notices(events.append, shard)
    emit(Notice(problem=Problem("uploader.copied", "")))
    emit(Notice(problem=Problem("uploader.expires", "")))

    assert [event.problem.code for event in events] == ["uploader.copied"] * told + [
        "uploader.expires"
    ]
