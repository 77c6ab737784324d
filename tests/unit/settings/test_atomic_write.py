"""Files and folders of ours: private whatever the umask is, and never something else."""

import os
import stat

import pytest

from mydata_like.core.errors import SettingsError
from mydata_like.settings.atomic_write import (
    make_private_file,
    make_private_folder,
    read_plain,
    write_private,
)
from tests.umasks import has_mode, modes_below, umask

pytestmark = pytest.mark.skipif(os.name != "posix", reason="only POSIX has modes")


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_what_is_made_is_private_whatever_the_umask(tmp_path, mask):
    with umask(mask):
        make_private_folder(tmp_path / "a" / "b")
        make_private_file(tmp_path / "c" / "d" / "file")
        write_private(tmp_path / "e" / "f" / "file", b"text")

    assert set(modes_below(tmp_path).values()) == {"drwx------", "-rw-------"}


def test_the_mode_of_a_file_that_is_there_is_corrected(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(b"text")
    file.chmod(0o666)

    make_private_file(file)

    assert has_mode(file, 0o600)
    assert file.read_bytes() == b"text"


@pytest.mark.parametrize("use", [make_private_file, read_plain, lambda at: write_private(at, b"")])
def test_a_named_pipe_is_refused_at_once(tmp_path, use):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    with pytest.raises(SettingsError, match="is a named pipe"):
        use(pipe)

    assert stat.S_ISFIFO(pipe.stat().st_mode)
