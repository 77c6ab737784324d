"""The part of the Task Scheduler's schema that our task uses, as a check of its elements.

Source: https://learn.microsoft.com/windows/win32/taskschd/task-scheduler-schema. `xs:all` allows
any order, `xs:sequence` only one. Windows itself writes `Repetition` first in a trigger and
the schema has it after `Enabled` and the boundaries, so these are not listed here.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple
from xml.etree import ElementTree

NAMESPACE = "http://schemas.microsoft.com/windows/2004/02/mit/task"


class Node(NamedTuple):
    """The allowed children of an element, or the pattern of its text."""

    children: tuple[str, ...] = ()
    text: str = ""
    ordered: bool = False
    required: frozenset[str] = frozenset()


BOOLEAN = Node(text="true|false")
TEXT = Node(text=r"(?s).+")
DURATION = Node(text=r"PT\d+[MS]")
ELEMENTS = {
    "Task": Node(
        ("RegistrationInfo", "Triggers", "Principals", "Settings", "Actions"),
        required=frozenset({"Actions"}),
    ),
    "RegistrationInfo": Node(("Description",)),
    "Description": TEXT,
    "Triggers": Node(("BootTrigger", "LogonTrigger")),
    "BootTrigger": Node(("Repetition", "Delay"), ordered=True),
    "LogonTrigger": Node(("Repetition", "UserId", "Delay"), ordered=True),
    "Repetition": Node(("Interval", "Duration", "StopAtDurationEnd")),
    "Interval": Node(text=r"PT[1-9]\d*M"),  # at least a minute
    "Principals": Node(("Principal",), required=frozenset({"Principal"})),
    "Principal": Node(("UserId", "LogonType", "GroupId", "DisplayName", "RunLevel")),
    "UserId": TEXT,
    "LogonType": Node(text="S4U|Password|InteractiveToken|InteractiveTokenOrPassword"),
    "RunLevel": Node(text="LeastPrivilege|HighestAvailable"),
    "Settings": Node(
        (
            "AllowStartOnDemand",
            "RestartOnFailure",
            "MultipleInstancesPolicy",
            "DisallowStartIfOnBatteries",
            "StopIfGoingOnBatteries",
            "AllowHardTerminate",
            "StartWhenAvailable",
            "NetworkProfileName",
            "RunOnlyIfNetworkAvailable",
            "WakeToRun",
            "Enabled",
            "Hidden",
            "DeleteExpiredTaskAfter",
            "IdleSettings",
            "NetworkSettings",
            "ExecutionTimeLimit",
            "Priority",
            "RunOnlyIfIdle",
        )
    ),
    "RestartOnFailure": Node(("Interval", "Count"), required=frozenset({"Interval", "Count"})),
    "Count": Node(text="25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9][0-9]?"),  # an unsigned byte
    "MultipleInstancesPolicy": Node(text="Parallel|Queue|IgnoreNew|StopExisting"),
    "DisallowStartIfOnBatteries": BOOLEAN,
    "StopIfGoingOnBatteries": BOOLEAN,
    "StartWhenAvailable": BOOLEAN,
    "ExecutionTimeLimit": DURATION,
    "Priority": Node(text="10|[0-9]"),
    "Actions": Node(("Exec",), required=frozenset({"Exec"})),
    "Exec": Node(("Command", "Arguments", "WorkingDirectory"), required=frozenset({"Command"})),
    "Command": Node(text=r".{1,260}"),
    "Arguments": TEXT,
    "WorkingDirectory": Node(text=r".{1,260}"),
}


def find_errors(content: bytes) -> list[str]:
    """Return what is wrong with a task, as UTF-16 with its declaration."""
    root = ElementTree.fromstring(content.decode("utf-16"))
    if root.tag != f"{{{NAMESPACE}}}Task":
        return [f"the root is {root.tag}"]
    errors = list(_check(root))
    contexts = {principal.get("id") for principal in root.iter(f"{{{NAMESPACE}}}Principal")}
    actions = root.find(f"{{{NAMESPACE}}}Actions")
    if actions is not None and actions.get("Context") not in contexts:
        errors.append("Actions has the context of no principal")
    return errors


def _check(element: ElementTree.Element) -> Iterator[str]:
    name = element.tag.removeprefix(f"{{{NAMESPACE}}}")
    node = ELEMENTS.get(name)
    if node is None:
        yield f"{name} is unknown"
        return
    if node.text and not re.fullmatch(node.text, element.text or ""):
        yield f"{name} is {element.text}"
    names = [child.tag.removeprefix(f"{{{NAMESPACE}}}") for child in element]
    yield from (f"{name} has {child}" for child in names if child not in node.children)
    yield from (f"{name} lacks {child}" for child in sorted(node.required - set(names)))
    if len(set(names)) < len(names):
        yield f"{name} repeats an element"
    if node.ordered and names != [child for child in node.children if child in names]:
        yield f"{name} has another order"
    for child in element:
        yield from _check(child)
