"""The tables of Unicode's library that a bundle for Linux goes without."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import PySide6
import pytest

SCRIPT = Path(__file__).parents[3] / "packaging" / "linux" / "unicode.py"
LIBRARIES = sorted(Path(PySide6.__file__).parent.glob("Qt/lib/libicudata.so.*"))
HEADER = b"\x20\x00\xda\x27" + bytes(8) + b"CmnD" + bytes(16)
ASK = """
from functools import cmp_to_key
from PySide6.QtCore import QCollator, QLocale, QTime
for name in ("sv", "de", "tr", "ja", "lt"):
    language = QLocale(name)
    order = cmp_to_key(QCollator(language).compare)
    clock = language.toString(QTime(1, 2), QLocale.FormatType.ShortFormat)
    words = sorted(["zon", "Zebra", "äpple", "I", "i", "10", "9", "山", "ア", "ö"], key=order)
    print(words, [language.toUpper(word) for word in words], clock)
"""


@pytest.fixture(scope="module")
def unicode():
    spec = importlib.util.spec_from_file_location("bundle_unicode", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_is_kept_can_be_found_as_before(unicode):
    kept = [(b"icu/coll/de.res\0", b"order" * 7), (b"icu/root.res\0", b"all" * 16)]
    needless = [(b"icu/brkitr/de.res\0", b"-"), (b"icu/ibm-37.cnv\0", b"*" * 50)]

    trimmed = unicode.trim(HEADER + unicode.assemble(sorted(kept + needless)))

    assert trimmed == HEADER + unicode.assemble(kept)


@pytest.mark.process
@pytest.mark.skipif(
    not (LIBRARIES and shutil.which("as") and shutil.which("ld")), reason="no such library here"
)
def test_letters_have_the_same_order_and_case_without_the_other_tables(tmp_path):
    bundled = tmp_path / LIBRARIES[0].name
    shutil.copy(LIBRARIES[0], bundled)

    subprocess.run([sys.executable, SCRIPT, tmp_path], check=True, timeout=100)

    assert bundled.stat().st_size < LIBRARIES[0].stat().st_size / 3
    assert ask(LD_PRELOAD=str(bundled)) == ask()


def ask(**environment):
    """Return what Qt says of letters."""
    ended = subprocess.run(
        [sys.executable, "-c", ASK],
        check=True,
        capture_output=True,
        timeout=100,
        env=os.environ | {"PYTHONUTF8": "1"} | environment,
    )
    return ended.stdout
