"""The embedded server in a separate process."""

import json

import pytest
import requests

from mydata_like.demo.server_process import ServerProcess

pytestmark = pytest.mark.process


def ask(server, path):
    headers = {"Authorization": f"ApiKey {server.username}:{server.api_key}"}
    return requests.get(f"{server.url}/api/v1/{path}", headers=headers, timeout=10)


def test_it_takes_commands_over_http(tmp_path):
    with ServerProcess(tmp_path / "site") as server:
        server.command("faults", rules=[{"action": "reply", "status": 503, "path": "user"}])
        seen = [ask(server, "user/").status_code for _ in range(2)]
        listed = server.command("requests", since=1)
        with pytest.raises(ValueError, match="not an action"):
            server.command("faults", rules=[{"action": "explode"}])

    assert seen == [503, 200]
    assert [entry["path"] for entry in listed] == ["/api/v1/user/"]


def test_it_remembers_what_it_knew_before_it_was_killed(tmp_path):
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps([{"action": "empty_list", "path": "facility"}]))
    with ServerProcess(tmp_path / "site") as first:
        address = {"username": "mydata", "hostname": "staging.example.org", "port": 2222}
        first.command("address", **address)
        first.kill()

        with ServerProcess(tmp_path / "site", "--faults", str(rules)) as second:
            lists = [ask(second, "facility/").json()["objects"] for _ in range(2)]
            key = second.command("key_of", username="demo")

    assert first.api_key == second.api_key == key
    assert [len(found) for found in lists] == [0, 1]
    assert second.box_location.is_dir()
