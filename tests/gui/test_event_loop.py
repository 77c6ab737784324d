"""Nothing in the window runs an event loop inside of another one.

What is asked in such a loop keeps its caller waiting, while everything else goes on below it.
"""

import ast
from pathlib import Path

import mydata_like.gui

SOURCES = sorted(Path(mydata_like.gui.__file__).parent.rglob("*.py"))
BOXES = {"QFileDialog", "QMessageBox", "QInputDialog", "QColorDialog", "QFontDialog"}
ASKING = ("get", "save", "about", "information", "question", "warning", "critical")
LOOPS = {
    ("application.py", "app"),
    ("launch.py", "application"),
}  # each the only one of its program


def test_no_question_keeps_its_caller_waiting():
    assert list(find_loops("box = QMessageBox()\nbox.exec()\nQFileDialog.getOpenFileName()")) == [
        "box.exec",
        "QFileDialog.getOpenFileName",
    ]

    found = [
        f"{path}: {call}"
        for path in SOURCES
        for call in find_loops(path.read_text())
        if (path.name, call.partition(".")[0]) not in LOOPS
    ]
    assert found == []


def find_loops(source):
    """Yield every call that comes back only when a user has answered."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            whose, name = ast.unparse(node.func.value), node.func.attr
            asks = whose in BOXES and name.startswith(ASKING)
            if asks or name in ("exec", "exec_", "processEvents"):
                yield f"{whose}.{name}"
