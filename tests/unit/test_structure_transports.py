"""Each kind of transport has its places; no other module names it."""

import re

import pytest

from tests.structure import Module, Structure

# What names a kind in code, except in docstrings and comments.
NAMES = {
    "s3": re.compile(r"(?i)(?<![a-z0-9])s3(?![0-9])|object.?storage|botocore"),
    "folder": re.compile(
        r"(?i)staging_?folder|mounted_?folder|folder_(process|files|session|speed|kind|destination)"
        r"|transfer\.folder|(method|access|rung) [!=]= 'folder'"
    ),
    "http": re.compile(r"HttpTransport|ChunkedUpload|http_(kind|upload)|over HTTP"),
    "ssh": re.compile(r"mydata_like\.transfer\.ssh\b|ssh_kind|SshKind"),
}
TEXTS = re.compile(r"f?'[^'\n]*'|f?\"[^\"\n]*\"")
# The implementation of each kind: how its bytes travel, and how the program uses it.
PLACES = {
    "s3": (
        "mydata_like.transfer.s3.",
        "mydata_like.app.bucket_place",  # without a server
        "mydata_like.app.transports.s3_kind",
    ),
    "folder": (
        "mydata_like.transfer.folder.",
        "mydata_like.app.plain_destination",  # without a server: a host, or a folder
        "mydata_like.app.transports.folder_kind",
        "mydata_like.speedtest.mounted_folder",
    ),
    "http": (
        "mydata_like.catalogues.mytardis.http_upload",
        "mydata_like.catalogues.mytardis.chunked_upload",
        "mydata_like.app.transports.http_kind",
        "mydata_like.app.transports.auto_kind",  # uses it until SSH is approved
    ),
    "ssh": (
        "mydata_like.transfer.ssh.",
        "mydata_like.app.host_login",
        "mydata_like.app.plain_destination",
        "mydata_like.app.transports.ssh_kind",
        "mydata_like.app.transports.auto_kind",
        "mydata_like.speedtest.remote_host",
    ),
}
# The lists of all kinds, in which each has its row: settings, problems, texts of the window.
LISTS = {
    "app.transports.transport_kinds",
    "core.problems",
    "gui.setting_labels",
    "gui.settings_editor.form",
    "gui.speed_test.speedtest_texts",
    "gui.wizard.destination_steps",
    "settings.sections",
    "settings.transfer_sections",
    "settings.server_layer",
}
# Other modules that name a kind, and why. The fewer, the better.
EXCEPTIONS = {
    # Its secret is stored as that of the account is.
    "s3": {
        "app.logging_setup",
        "app.run_request",
        "app.settings_edit",
        "app.settings_service",
        "app.support_bundle",
        "cli.settings_command",
        "gui.settings_editor.connection_test_view",
        "gui.settings_editor.secret_row",
        "gui.settings_editor.settings_dialog",
        "settings.layers",
        "settings.pending_changes",
        "state.paths",
        "state.secrets",
        # The optional package, and the server of the demonstration.
        "hostos.dependencies",
        "selftest.checks",
        "demo.object_mirror",
        "demo.uploaders",
        # The URL of a bucket as a destination of a copy.
        "core.copy_arguments",
        "cli.copy_command",
        "cli.get_command",
        "cli.verify_command",
    },
    # The user confirms a new one.
    "folder": {
        "app.get_events",  # the files that the local folder receives
        "app.get_service",  # the local folder that receives files
        "app.receiving",
        "app.mytardis_place",  # the same
        "app.registration",
        "app.restore_test",  # the local files that are compared
        "app.transports.transport_access",
        "cli.register_command",
        "gui.wizard.key_step",
        "transfer.ssh.sftp_sender",  # compares what is there
    },
    # What is not possible over it is explained to the user.
    "http": {
        "app.transports.transport_access",
        "cli.changed_command",
        "engine.changed_files",
        "catalogues.mytardis.api",
    },
    # The user confirms a host's key; the workers' senders; what they share with a mounted folder.
    "ssh": {
        "app.mytardis_place",  # the staging host that is read
        "app.registration",
        "app.transports.folder_kind",
        "app.transports.http_kind",
        "app.transports.staging_kind",
        "app.transports.transport_access",
        "app.undo_service",
        "cli.register_command",
        "gui.wizard.key_step",
        "transfer.folder.folder_process",
        "transfer.worker",
    },
}


@pytest.fixture(scope="module")
def house() -> Structure:
    return Structure()


def names(module: Module, kind: str) -> bool:
    return bool(NAMES[kind].search(module.code))


@pytest.mark.slow
@pytest.mark.structure
@pytest.mark.parametrize("kind", PLACES)
def test_a_kind_of_transport_is_named_only_in_its_places(house, kind):
    elsewhere = {
        module.name.removeprefix("mydata_like.")
        for module in house.modules.values()
        if not module.name.startswith(PLACES[kind]) and names(module, kind)
    }

    assert elsewhere - LISTS - EXCEPTIONS[kind] == set()
    assert EXCEPTIONS[kind] - elsewhere == set(), "no longer an exception"


@pytest.mark.slow
@pytest.mark.structure
def test_nothing_but_the_table_of_kinds_depends_on_the_method(house):
    """Settings may: they are checked before there is a transport."""
    asked = re.compile(r"transfer\.method\b(?!['\"])(?! to )")
    found = {
        module.name.removeprefix("mydata_like.")
        for module in house.modules.values()
        if not module.name.startswith("mydata_like.settings.")
        and asked.search(TEXTS.sub("", module.code))
    }

    assert found == {"app.transports.transport_kinds"}
