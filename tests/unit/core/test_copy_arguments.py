import os.path

import pytest

from mydata_like.core.copy_arguments import (
    BucketTarget,
    CopySource,
    FolderTarget,
    HostTarget,
    format_target,
    parse_target,
    plan_sources,
)
from mydata_like.core.errors import SettingsError, SourceError

FOLDERS = (b"/", b"/home", b"/home/me", b"/home/me/a", b"/home/me/a/in", b"/b", b"/b/a", b"/x/a")


def parse(text, *, windows=False):
    return parse_target(text, windows=windows, home=b"/home/me")


def plan(*sources, real_path=os.path.normpath):
    return plan_sources(
        sources, FOLDERS.__contains__, cwd=b"/home/me", real_path=real_path, windows=False
    )


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("host:", HostTarget("host", b"")),
        ("host:.", HostTarget("host", b"")),
        ("host:data", HostTarget("host", b"data")),
        ("host:/data/x", HostTarget("host", b"/data/x")),
        ("host:/", HostTarget("host", b"/")),
        ("me@host:data/", HostTarget("host", b"data", "me")),
        ("a@b@host:data", HostTarget("host", b"data", "a@b")),
        ("host:a:b@c", HostTarget("host", b"a:b@c")),
        ("host:a//./b/", HostTarget("host", b"a/b")),
        ("host:a/../b", HostTarget("host", b"a/../b")),
        ("host:~", HostTarget("host", b"")),
        ("host:~/x", HostTarget("host", b"x")),
        ("host:~//etc", HostTarget("host", b"etc")),
        ("host:x/~/y", HostTarget("host", b"x/~/y")),
        ("host:./~x", HostTarget("host", b"./~x")),
        ("host:-rf", HostTarget("host", b"./-rf")),
        ("host:$(x) *", HostTarget("host", b"$(x) *")),
        (b"host:caf\xe9", HostTarget("host", b"caf\xe9")),
        ("[::1]:p", HostTarget("::1", b"p")),
        ("me@[fe80::1%eth0]:/p", HostTarget("fe80::1%eth0", b"/p", "me")),
        ("[a]:x", None),
        ("C:/x", HostTarget("C", b"/x")),
        ("ssh://host", HostTarget("host", b"")),
        ("ssh://host/", HostTarget("host", b"/")),
        ("ssh://host/data", HostTarget("host", b"/data")),
        ("SSH://me@host:2222/data", HostTarget("host", b"/data", "me", 2222)),
        ("ssh://host:22/~/x", HostTarget("host", b"x", "", 22)),
        ("ssh://host/~", HostTarget("host", b"")),
        ("ssh://host/a%20b", HostTarget("host", b"/a b")),
        ("ssh://me@[::1]:22/x", HostTarget("::1", b"/x", "me", 22)),
        ("ssh://[::1]/x", HostTarget("::1", b"/x")),
        ("s3://bucket", BucketTarget("bucket", "")),
        ("s3://bucket/a/b/", BucketTarget("bucket", "a/b")),
        ("s3://b/c", BucketTarget("b", "c")),
        ("folder", FolderTarget(b"folder")),
        ("/a:b", FolderTarget(b"/a:b")),
        ("./a:b", FolderTarget(b"./a:b")),
        ("./s3://x", FolderTarget(b"./s3://x")),
        ("~", FolderTarget(b"/home/me")),
        ("~/x", FolderTarget(b"/home/me/x")),
        ("./~x", FolderTarget(b"./~x")),
        ("[x]/y", FolderTarget(b"[x]/y")),
    ],
)
def test_a_destination_is_understood_as_by_rsync_and_scp(text, target):
    if target is None:
        with pytest.raises(SettingsError):
            parse(text)
    else:
        assert parse(text) == target


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("C:\\x", FolderTarget(b"C:\\x")),
        ("c:/x", FolderTarget(b"c:/x")),
        ("E:", FolderTarget(b"E:/")),
        ("\\\\server\\share", FolderTarget(b"\\\\server\\share")),
        ("\\\\?\\C:\\x", FolderTarget(b"\\\\?\\C:\\x")),
        (".\\a:b", FolderTarget(b".\\a:b")),
        ("~\\x", FolderTarget(b"/home/me\\x")),
        ("host:x", HostTarget("host", b"x")),
        ("ssh://c/x", HostTarget("c", b"/x")),
    ],
)
def test_drives_and_backslashes_are_local_on_windows(text, target):
    assert parse(text, windows=True) == target


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("host:a\0b", "NUL"),
        ("ssh://host/a%00b", "NUL"),
        ("a\0b", "NUL"),
        (":x", "valid host"),
        ("@host:x", "valid user"),
        ("-oProxyCommand=x:y", "valid host"),
        ("me@-x:y", "valid host"),
        ("-l@host:y", "valid user"),
        ("ho\nst:y", "valid host"),
        ("ho st:y", "valid host"),
        ("$(x):y", "valid host"),
        ("m\x1be@host:y", "valid user"),
        ("a;b@host:y", "valid user"),
        ("[-x::1]:y", "valid host"),
        ("ssh:///x", "valid host"),
        ("ssh://%2Dx/y", "valid host"),
        ("ssh://ho%0Ast/y", "valid host"),
        ("ssh://host:0/y", "port"),
        ("ssh://host:65536/y", "port"),
        ("ssh://host:x/y", "name a host"),
        ("ssh://::1/y", "name a host"),
        ("host::module", "rsync daemon"),
        ("rsync://host/x", "rsync://"),
        ("sftp://host/x", "sftp://"),
        ("host:~other/x", "~other"),
        ("host:~other", "~other"),
        ("ssh://host/~other/x", "~other"),
        ("~other/x", "~other"),
        ("s3://", "bucket"),
        ("s3:///x", "bucket"),
        (b"s3://bucket/\xe9", "UTF-8"),
        ("s3://bucket/a//b", "empty parts"),
        ("s3://bucket/../b", "as a part"),
    ],
)
def test_a_destination_that_is_not_clear_is_refused(text, message):
    with pytest.raises(SettingsError, match=message) as raised:
        parse(text)

    assert raised.value.problem_code == "copy.destination"
    assert raised.value.hint
    assert raised.value.message.isprintable()


@pytest.mark.parametrize(
    "target",
    [
        HostTarget("store", b"/archive/a b/\xff%2F:@"),
        HostTarget("store", b"archive/below home", "ann", 2222),
        HostTarget("store", b"", "DOMAIN\\ann"),
        HostTarget("::1", b"/archive", "ann@site"),
        FolderTarget(b"/mnt/a:b/\xff"),
        BucketTarget("bucket", "lab 1/raw"),
        BucketTarget("bucket", ""),
    ],
)
def test_a_formatted_destination_is_understood_as_the_same(target):
    text = format_target(target)

    assert parse_target(text, windows=False, home=b"/home/ann") == target


def test_a_path_on_windows_that_is_relative_to_a_drive_is_refused():
    with pytest.raises(SettingsError, match="neither"):
        parse("C:x", windows=True)


def test_a_password_is_refused_and_not_repeated():
    with pytest.raises(SettingsError) as raised:
        parse("ssh://me:secret@host/x")

    assert "password" in raised.value.message
    assert "secret" not in raised.value.message + raised.value.hint


@pytest.mark.parametrize(
    ("source", "planned"),
    [
        (b"a", CopySource(b"/home/me/a", b"a", alone=False)),
        (b"./a", CopySource(b"/home/me/a", b"a", alone=False)),
        (b"/b/a", CopySource(b"/b/a", b"a", alone=False)),
        (b"a/", CopySource(b"/home/me/a", b"", alone=False)),
        (b"a//", CopySource(b"/home/me/a", b"", alone=False)),
        (b"a/.", CopySource(b"/home/me/a", b"", alone=False)),
        (b"a/in", CopySource(b"/home/me/a/in", b"in", alone=False)),
        (b"a/file", CopySource(b"/home/me/a/file", b"file", alone=True)),
        (b"host:x", CopySource(b"/home/me/host:x", b"host:x", alone=True)),
        (b"caf\xe9", CopySource(b"/home/me/caf\xe9", b"caf\xe9", alone=True)),
        (b".", CopySource(b"/home/me", b"", alone=False)),
        (b"..", CopySource(b"/home", b"", alone=False)),
        (b"/", CopySource(b"/", b"", alone=False)),
        (b"../../b", CopySource(b"/b", b"b", alone=False)),
        (b"a/in/..", CopySource(b"/home/me/a", b"", alone=False)),
        (b"a/../a/in", CopySource(b"/home/me/a/in", b"in", alone=False)),
    ],
)
def test_a_source_is_copied_to_its_name_and_contents_to_the_destination(source, planned):
    assert plan(source) == [planned]


def test_a_parent_folder_is_that_of_the_folder_which_a_link_leads_to():
    (planned,) = plan(b"link/../a", real_path={b"/home/me/link": b"/x/y"}.__getitem__)

    assert planned == CopySource(b"/x/a", b"a", alone=False)


def test_several_sources_have_a_place_each():
    assert [source.place for source in plan(b"a", b"/b", b"file")] == [b"a", b"b", b"file"]


@pytest.mark.parametrize(
    ("source", "path", "place"),
    [
        (b"E:", b"E:/", b""),
        (b"E:\\", b"E:/", b""),
        (b"E:\\x", b"E:/x", b"x"),
        (b"E:\\x\\", b"E:/x", b""),
        (b"x\\y", b"C:/here/x/y", b"y"),
        (b"\\x", b"C:/x", b"x"),
        (b"..\\x", b"C:/x", b"x"),
        (b"\\\\server\\share\\x", b"//server/share/x", b"x"),
        (b"\\\\server\\share", b"//server/share/", b""),
    ],
)
def test_sources_on_windows_are_separated_by_slashes(source, path, place):
    planned = plan_sources(
        [source], lambda _: True, cwd=b"C:\\here", real_path=lambda path: path, windows=True
    )

    assert planned == [CopySource(path, place, alone=False)]


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ((), "nothing to copy"),
        ((b"",), "empty"),
        ((b"a\0b",), "NUL"),
        ((b"a/file/",), "not a folder"),
        ((b"a", b"/x/a"), "/home/me/a and /x/a would both be copied to a"),
        ((b"a", b"a"), "would both"),
        ((b"a/", b"/b/"), "mixed"),
        ((b"a", b"/b/"), "mixed"),
        ((b"a", b"a/in"), "/home/me/a/in is in /home/me/a,"),
        ((b"a/in", b"a"), "/home/me/a/in is in /home/me/a,"),
    ],
)
def test_sources_that_would_be_mixed_are_refused(sources, message):
    with pytest.raises(SourceError, match=message) as raised:
        plan(*sources)

    assert raised.value.problem_code == "copy.source"
    assert raised.value.hint


def test_a_source_that_is_relative_to_a_drive_is_refused():
    with pytest.raises(SourceError, match="of its drive"):
        plan_sources(
            [b"E:x"], lambda _: True, cwd=b"C:\\", real_path=lambda path: path, windows=True
        )
