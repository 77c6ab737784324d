"""Where a computer without settings has copied files to: `where` and `status`."""

import pytest

from tests.copy_site import open_copy_site
from tests.sshd_fixture import needs_sshd

pytestmark = [pytest.mark.e2e, needs_sshd]


@pytest.fixture
def site(tmp_path, sshd):
    """A site whose source was copied to a host."""
    with open_copy_site(tmp_path / "site", "host", sshd) as opened:
        (opened.data / "src" / "sub").mkdir(parents=True)
        (opened.data / "src" / "sub" / "image.tif").write_bytes(b"content")
        assert opened.copy(opened.data / "src").code == 0
        yield opened


@pytest.mark.parametrize("text", ["path", "name", "folder"])
def test_each_copy_of_a_file_is_told_in_words_of_its_destination(site, tmp_path, text):
    folder = site.data / "src"
    other = tmp_path / "other"
    assert site.call("copy", folder, other).code == 0
    texts = {"path": folder / "sub" / "image.tif", "name": "image.tif", "folder": folder}

    found = site.call("where", texts[text])

    assert found.code == 0
    assert found.output.count("src/sub/image.tif\n  verified: safe ") == 2
    assert f"path in {other}: src/sub/image.tif" in found.output
    assert "path on " in found.output
    assert "server" not in found.output
    assert "dataset" not in found.output


def test_what_was_never_copied_is_unknown(site):
    missed = site.data / "src" / "later"
    missed.write_bytes(b"new")

    assert site.call("where", missed).code == 1


def test_the_status_is_about_copies_where_nothing_else_is_set_up(site):
    told = site.call("status").output

    assert told.startswith("Runs are not set up. These copies were made:\nCopy to ")
    assert "1 of 1 files proven" in told
    assert "missing" not in told
