"""The import contracts know all that they are about."""

import tomllib
from pathlib import Path
from typing import get_type_hints

from mydata_like.engine.run import Stages

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))
CONTRACTS = {
    contract["name"]: contract for contract in PROJECT["tool"]["importlinter"]["contracts"]
}


def test_every_stage_is_in_the_contract_of_stages():
    stages = {stage.__module__ for stage in get_type_hints(Stages).values()}

    assert stages == set(CONTRACTS["Stages do not import one another"]["modules"])
