"""The texts in the source code of the window: translatable ones, and untranslated ones.

python -m tests.gui.texts

prints the translatable texts in a form that all versions of Qt's tools read correctly: lupdate 6.11
misses counts that are variables, and texts within f-strings.
"""

import ast
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import mydata_like
from mydata_like.core.formatting import LIMITS
from mydata_like.core.resources import find_resources
from mydata_like.gui.theme.engine_translator import CONTEXT as ENGINE_CONTEXT
from mydata_like.gui.theme.texts import LIMITS_CONTEXT
from mydata_like.settings.schema import CONTEXT, iter_settings, short_unit

ROOT = Path(mydata_like.__file__).parent / "gui"

# Calls whose text the user reads, or a screen reader speaks.
SHOWING = re.compile(
    r"Q(Label|PushButton|ToolButton|CheckBox|RadioButton|Action|GroupBox|Menu|WizardPage)"
    r"|(Plain|Elided)Label"
    r"|set(Text|Title|SubTitle|WindowTitle|ToolTip|StatusTip|WhatsThis|PlaceholderText|LabelText)"
    r"|setAccessible(Name|Description)"
    r"|set(ButtonText|HeaderLabels|HorizontalHeaderLabels|InformativeText|DetailedText)"
    r"|add(Action|Menu|Tab|Button|Row)"
    r"|showMessage"
)


# The same in every language: the program, and examples of addresses.
NAMES = {
    *("mydata-like", "mytardis.example.org"),
    *("ada@store.example.org", "/data/microscope", "s3://bucket/folder"),
}


@dataclass(frozen=True)
class Text:
    """A translatable text with the key by which Qt finds its translation."""

    context: str
    source: str
    comment: str = ""  # for translators
    counted: bool = False
    place: str = ""


@dataclass(frozen=True)
class Module:
    path: Path

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text("utf-8"))

    def place(self, node: ast.AST) -> str:
        return f"{self.path.relative_to(ROOT)}:{node.lineno}"


def find_modules() -> list[Module]:
    return [Module(path) for path in sorted(ROOT.rglob("*.py"))]


def find_texts() -> list[Text]:
    """Return all texts passed to `tr` or `translate`, and those of settings, limits and engine."""
    abouts = [setting.about for setting in iter_settings()]
    labels = (text for about in abouts for text in (about.label, about.help, short_unit(about)))
    phrases = [Text(CONTEXT, phrase) for phrase in dict.fromkeys(filter(None, labels))]
    phrases += [Text(LIMITS_CONTEXT, limit) for limit in LIMITS.values()]
    phrases += [Text(ENGINE_CONTEXT, sentence) for sentence in read_templates()]
    return phrases + [text for module in find_modules() for text in _walk(module, module.tree, "")]


def read_templates() -> list[str]:
    """Return the templates of the engine's sentences, as tests.engine_sentences has found them."""
    file = find_resources() / "translations" / "engine.json"
    return list(json.loads(file.read_text("utf-8")))


def _walk(module: Module, node: ast.AST, context: str) -> Iterator[Text]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            yield from _read(module, child, context)
        inner = child.name if isinstance(child, ast.ClassDef) else context
        yield from _walk(module, child, inner)


def _read(module: Module, call: ast.Call, context: str) -> Iterator[Text]:
    match name_of(call):
        case "tr":
            given = context, *call.args
        case "translate" | "QT_TRANSLATE_NOOP":
            given = _literal(module, call, 0), *call.args[1:]
        case _:
            return
    start = len(call.args) - len(given)
    yield Text(
        context=given[0],
        source=_literal(module, call, start + 1),
        comment=_literal(module, call, start + 2) if len(given) > 2 else "",
        counted=len(given) > 3 or any(word.arg == "n" for word in call.keywords),
        place=module.place(call),
    )


def _literal(module: Module, call: ast.Call, at: int) -> str:
    text = call.args[at]
    assert isinstance(text, ast.Constant), f"{module.place(call)}: lupdate reads only literal texts"
    return text.value or ""


def find_forgotten() -> list[str]:
    """Return all visible literals that are not translated."""
    return [
        f"{module.place(argument)}: {argument.value!r}"
        for module in find_modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and SHOWING.fullmatch(name_of(node))
        for argument in node.args
        if isinstance(argument, ast.Constant)
        and isinstance(argument.value, str)
        and any(letter.isalpha() for letter in argument.value)
        and argument.value not in NAMES
    ]


def name_of(call: ast.Call) -> str:
    return getattr(call.func, "attr", None) or getattr(call.func, "id", "")


def main() -> None:
    for text in find_texts():
        words = (text.context, text.source, text.comment)
        said = ", ".join(json.dumps(word, ensure_ascii=False) for word in words)
        sys.stdout.write(f"translate({said}{', 3' if text.counted else ''})\n")


if __name__ == "__main__":
    main()
