"""Every kind of transport is described once."""

from typing import get_args, get_type_hints

from mydata_like.app.transports.transport_kinds import KINDS
from mydata_like.settings.schema import Transfer


def test_every_value_of_the_setting_has_its_kind_of_transport():
    assert set(KINDS) == set(get_args(get_type_hints(Transfer)["method"]))
