"""Every kind of transport is described once."""

import re
from pathlib import Path
from typing import get_args, get_type_hints

import mydata_like.app
from mydata_like.app.transports import KINDS
from mydata_like.settings.schema import Transfer

# The modules that send something of their own over each kind, to test or to measure it.
MEASURING = {"connection_test.py", "speedtest_service.py"}


def test_every_value_of_the_setting_has_its_kind_of_transport():
    assert set(KINDS) == set(get_args(get_type_hints(Transfer)["method"]))


def test_no_other_module_of_app_tells_the_kinds_apart():
    folder = Path(next(iter(mydata_like.app.__path__)))
    compared = re.compile(r"transfer\.method (==|!=|in|not in) ")

    found = {path.name for path in folder.glob("*.py") if compared.search(path.read_text("utf-8"))}

    assert found <= MEASURING
