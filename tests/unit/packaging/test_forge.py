"""What the forge reads: its workflow, its forms, and the gate that it runs."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FOLDER = ROOT / ".github" / "ISSUE_TEMPLATE"
FORMS = sorted(file for file in FOLDER.glob("*.yml") if file.stem != "config")
JOBS = [
    pytest.param(job, id=f"{file.stem}-{name}")
    for file in WORKFLOWS
    for name, job in yaml.safe_load(file.read_text("utf-8"))["jobs"].items()
]
NAMED = re.compile(r"(?:\.ci|packaging)/[\w./-]+")


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_a_workflow_may_only_read(file):
    told = yaml.safe_load(file.read_text("utf-8"))

    assert told.keys() == {"name", True, "permissions", "jobs"}  # YAML takes "on" for true
    assert told["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("job", JOBS)
def test_every_step_either_uses_a_version_of_an_action_or_runs_something(job):
    assert job.keys() <= {"runs-on", "strategy", "steps", "timeout-minutes"}
    for step in job["steps"]:
        assert ("uses" in step) != ("run" in step)
        assert step.keys() <= {"uses", "run", "with", "name", "if"}
        assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step.get("uses", "any/action@v1"))


@pytest.mark.parametrize("job", JOBS)
def test_every_expression_asks_for_what_there_is(job):
    matrix = {f"matrix.{key}" for key in job.get("strategy", {}).get("matrix", {})}
    asked = set(re.findall(r"\$\{\{ *([\w.]+) *\}\}", str(job)))

    assert asked - matrix == set()


@pytest.mark.parametrize("job", JOBS)
def test_every_script_that_a_step_runs_is_in_the_repository(job):
    named = NAMED.findall(" ".join(step.get("run", "") for step in job["steps"]))

    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_the_forge_runs_the_same_gate():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())["jobs"]

    gate, elsewhere = (
        [step.get("run", "") for step in jobs[name]["steps"]] for name in ("gate", "elsewhere")
    )
    assert ".ci/run" in gate
    told = " ".join(elsewhere)
    tools = ("ruff format --check", "ruff check", "mypy", "lint-imports", "pytest")
    assert [tool for tool in tools if tool not in told] == []


@pytest.mark.parametrize("file", FORMS, ids=lambda file: file.stem)
def test_a_form_asks_each_thing_once(file):
    form = yaml.safe_load(file.read_text("utf-8"))

    assert form.keys() == {"name", "description", "labels", "body"}
    names = [field["id"] for field in form["body"]]
    assert len(names) == len(set(names)) > 0
    for field in form["body"]:
        assert field["type"] in {"input", "textarea", "dropdown", "checkboxes"}
        assert field["attributes"]["label"].endswith("?") or field["id"] == "bundle"
