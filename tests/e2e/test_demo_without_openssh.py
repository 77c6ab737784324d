"""The demonstration where OpenSSH's server is missing: our own endpoint, by scp or SFTP."""

import pytest

from mydata_like.cli.output import Shape
from mydata_like.cli.run_command import RunArguments, run_and_show
from mydata_like.demo.demo_site import start_site
from mydata_like.demo.fixtures import make_samples
from mydata_like.demo.ssh_servers import AsyncSshd

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("stack", ["libssh", "paramiko"])
def test_every_sample_arrives(tmp_path, capsys, stack):
    make_samples(tmp_path / "data", tiny_files=30, large=1 << 20)
    with start_site(tmp_path, sshd=AsyncSshd(tmp_path / "sshd")) as place:
        config = tmp_path / "settings.toml"
        place.write_settings(config)

        code = run_and_show(
            RunArguments(config, (f"transfer.ssh={stack}", "limits.low_priority=false"), Shape.JSON)
        )

        assert place.find_losses() == []
    assert code == 0, capsys.readouterr()
