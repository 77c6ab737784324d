"""Building the library for checksums: it is replaced by one that was compiled, and nothing else."""

import runpy
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.process

SCRIPT = Path(__file__).parents[3] / "packaging" / "compile_md5.py"
COMPILER = """
import sys
from pathlib import Path
Path(sys.argv[sys.argv.index("-o") + 1]).write_text("new")
sys.exit({code})
"""


@pytest.mark.parametrize(("code", "content"), [(0, "new"), (1, "old")])
def test_a_compiler_that_fails_leaves_the_library_as_it_was(tmp_path, code, content):
    compiler = tmp_path / "compiler.py"
    compiler.write_text(COMPILER.format(code=code))
    library = tmp_path / "library" / "_md5.so"
    library.parent.mkdir()
    library.write_text("old")

    compile_library = runpy.run_path(str(SCRIPT))["compile_library"]
    assert compile_library([sys.executable, str(compiler)], library) is (code == 0)
    assert library.read_text() == content
    assert list(library.parent.iterdir()) == [library]


@pytest.mark.parametrize(
    ("compiler", "system"), [("x86_64-w64-mingw32-gcc", "win32"), ("gcc", sys.platform)]
)
def test_the_compiler_decides_for_which_system_a_wheel_is(compiler, system):
    found = runpy.run_path(str(SCRIPT))["find_system"]([f"/usr/bin/{compiler}"])

    assert found[0] == system
    assert found[1].startswith("win_amd64") is (system == "win32")
