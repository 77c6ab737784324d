"""The sentences of the engine as templates, found in the source code.

python -m tests.engine_sentences

prints them as the window reads them: a JSON object, each with the numbers of the arguments that may
be sentences themselves. The source is only parsed, not imported. The argument of `Problem(...)`, of
an error or of another carrier of sentences is followed to all its literal texts: through variables,
constants, parameters, the results of functions, both parts of conditions. What is left, the values
of f-strings, becomes %1, %2 and so on.
"""

import ast
import itertools
import json
import math
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import mydata_like

ROOT = Path(mydata_like.__file__).parent
PLACEHOLDER = re.compile(r"%(\d)")
DEEPEST = 12  # names and calls that are followed one after another
MOST_FORMS = 24  # of one sentence; beyond, conditions within it become arguments

ERROR = ((0, "message"), (None, "hint"))
# What carries sentences besides the errors: the places and names of its arguments.
CARRIERS = {
    "Problem": ((1, "message"), (2, "hint")),
    "_replace": ((None, "message"), (None, "hint")),
    "kind": ERROR,  # one of two classes of errors
    "TestStep": ((2, "message"), (3, "hint")),
    "HostCapabilities": ((1, "why"),),
    "SettingProblem": ((1, "message"),),
    "KeyKind": ((3, "advice"),),
    "ConversionNote": ((2, "reason"),),
    "LegacyKey": ((None, "reason"),),
    "_Rule": ((None, "message"), (None, "hint")),  # in transfer/s3/s3_errors
}
SETTING_ERRORS = {"ValueError", "UnusableError", "_SyntaxError"}  # of checks of settings
# Modules whose sentences reach the window in other ways: every literal that is one.
ALL_SENTENCES = {
    *("app.mydata_import", "app.registration", "app.settings_edit", "app.settings_service"),
    *("settings.layers", "settings.server_layer", "hostos.folder_watcher"),
    *("app.transports.folder_kind", "app.bucket_place"),
    *("app.host_login", "app.plain_destination"),
    "ssh.openssh_config",
}
# Modules whose sentences the window never shows: of the command line, of commands that the window
# writes itself, of the service for the whole computer, and of a window that cannot open.
NEVER_SHOWN = {
    *("cli", "demo", "selftest", "core.commands", "app.service_setup", "hostos.search_path"),
    "gui.startup_errors",
}
# Reasons that the operating system gives, and those that the program keeps until it reports them.
REASONS = (
    *("Permission denied", "Operation not permitted", "No such file or directory"),
    *("Input/output error", "No space left on device", "Disk quota exceeded", "File too large"),
    *("Read-only file system", "Not a directory", "Is a directory", "File exists"),
    *("File name too long", "Too many levels of symbolic links", "Too many open files"),
    *("Stale file handle", "No such device", "No such device or address", "Host is down"),
    *("Transport endpoint is not connected", "Device or resource busy", "Resource busy"),
    *("Connection refused", "Connection reset by peer", "Connection timed out", "Broken pipe"),
    *("Network is unreachable", "No route to host", "Cannot allocate memory"),
    *("Remote I/O error", "Required key not available", "Invalid argument"),
    "It is no longer a regular file",
    *("it is not a folder", "another folder or drive has taken its place", "it already exists"),
    *("the connection was refused", "there is no route to it", "it does not answer"),
    *("the answer took too long", "no headers received", "the agent refused"),
    *("its header is damaged", "it is not a ledger", "it has no version", "it is not a setting"),
    "the path is not possible below the folder",
)

# Values that are sentences, or parts of them, and are translated too.
NESTED = {
    *("message", "hint", "advice", "strerror", "problem", "problems", "error", "why"),
    *("reason", "_reason", "_name_reason", "said"),
}
# What changes nothing but the ends of a text.
TRIMMING = {"strip", "rstrip", "removesuffix"}
FIELD = re.compile(r"\{([a-z]+)\}")  # of `str.format`
MEANINGLESS = re.compile(r"\W*| .*|.*( \.|\(\)|:)")  # the text of a form with an empty value


class Argument(NamedTuple):
    """A value in a sentence; a nested one may be a sentence of the engine itself."""

    nested: bool = False


Template = tuple[str | Argument, ...]


class Node(NamedTuple):
    """A node of a syntax tree, and the function around it."""

    node: ast.AST
    function: ast.FunctionDef | None


@dataclass(frozen=True, eq=False)
class Module:
    name: str
    tree: ast.Module

    @cached_property
    def nodes(self) -> list[Node]:
        found: list[Node] = []
        _collect(self.tree, None, found)
        return found

    @cached_property
    def constants(self) -> dict[str, ast.expr]:
        return dict(_read_assignments(self.tree.body))

    @cached_property
    def classes(self) -> list[ast.ClassDef]:
        return [node for node, _ in self.nodes if isinstance(node, ast.ClassDef)]

    @cached_property
    def functions(self) -> dict[str, list[ast.FunctionDef]]:
        found = defaultdict(list)
        for node, _ in self.nodes:
            if isinstance(node, ast.FunctionDef):
                found[node.name].append(node)
        return found

    @cached_property
    def imports(self) -> dict[str, tuple[str, str]]:
        return {
            alias.asname or alias.name: (node.module or "", alias.name)
            for node, _ in self.nodes
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }


@dataclass(frozen=True, eq=False)
class Scope:
    """Where an expression stands; `bound` are the arguments of the call that is followed."""

    module: Module
    function: ast.FunctionDef | None
    bound: dict[str, tuple[ast.expr, "Scope"]] = field(default_factory=dict)
    depth: int = 0

    def deeper(self) -> "Scope":
        return Scope(self.module, self.function, self.bound, self.depth + 1)


class Place(NamedTuple):
    """An expression and where it stands."""

    expression: ast.expr
    scope: Scope

    @property
    def text(self) -> str:
        return ast.unparse(self.expression)


def _read_assignments(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for node in body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, _unwrap(value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                yield name, _unwrap(value)


def _unwrap(value: ast.expr) -> ast.expr:
    """Return the dictionary in a `MappingProxyType`."""
    is_proxy = isinstance(value, ast.Call) and name_of(value) == "MappingProxyType"
    return value.args[0] if is_proxy else value


class Sources:
    """The parsed source code, in which expressions are followed to their texts."""

    def __init__(self, root: Path = ROOT) -> None:
        self.modules = {
            module.name: module
            for module in (_parse(root, path) for path in sorted(root.rglob("*.py")))
        }
        self._calls = defaultdict(list)
        for module in self.modules.values():
            for node, function in module.nodes:
                if isinstance(node, ast.Call):
                    self._calls[name_of(node)].append((node, Scope(module, function)))
        self.errors = self._find_errors()

    def find_sentences(self) -> Iterator[Place]:
        """Yield every message and hint: the expressions, with where they stand."""
        for name, calls in list(self._calls.items()):
            for call, scope in calls:
                for position, keyword in self._arguments_of(name, scope):
                    found = _argument(call, position, keyword)
                    if found is not None:
                        yield Place(found, scope)

    def find_others(self) -> Iterator[Place]:
        """Yield the sentences and headings that reach the window in other ways."""
        for name in ALL_SENTENCES & self.modules.keys():
            scope = Scope(self.modules[name], None)
            yield from (Place(text, scope) for text in _find_texts(scope.module.tree))

    def list_templates(self) -> dict[str, str]:
        """Return the templates in order, each with the numbers of its nested arguments."""
        forms = [form for place in self.find_sentences() for form in self.templates(place)]
        forms = [form for form in forms if is_sentence(form)]
        forms += [form for place in self.find_others() for form in self.templates(place)]
        found: dict[str, str] = {}
        for text, nested in map(format_template, forms):
            found[text] = "".join(sorted({*nested, *found.get(text, "")}))
        return dict(sorted(found.items()))

    def templates(self, place: Place) -> list[Template]:
        """Return all forms of a text, each once."""
        found = [
            form for leaf in self._leaves(*place, seen=()) for form in self._forms_of_leaf(leaf)
        ]
        return list(dict.fromkeys(map(_join, found)))

    def _find_errors(self) -> set[str]:
        bases = {
            node.name: {ast.unparse(base).split(".")[-1] for base in node.bases}
            for module in self.modules.values()
            for node in module.classes
        }
        errors = {"UploaderError"}
        while more := {name for name, above in bases.items() if above & errors} - errors:
            errors |= more
        return errors

    def _arguments_of(self, name: str, scope: Scope) -> tuple:
        module = scope.module.name
        if module in NEVER_SHOWN or module.partition(".")[0] in NEVER_SHOWN:
            return ()
        if name in self.errors or (name in SETTING_ERRORS and module.startswith("settings.")):
            return ERROR
        if name == "__init__" and scope.function and self._is_of_error(scope):
            return ERROR
        return CARRIERS.get(name, ())

    def _is_of_error(self, scope: Scope) -> bool:
        """Return whether a method is that of an error."""
        return any(
            node.name in self.errors and scope.function in node.body
            for node in scope.module.classes
        )

    def _forms_of_leaf(self, place: Place) -> list[Template]:
        match place.expression:
            case ast.Constant(value=str(text)):
                return [_split_fields(text)]
            case ast.JoinedStr(values=values):
                return self._combine([Place(value, place.scope) for value in values])
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._combine([Place(left, place.scope), Place(right, place.scope)])
            case ast.Call(func=ast.Attribute(value=value, attr=name)) if name in TRIMMING:
                forms = self.templates(Place(value, place.scope.deeper()))
                return [*forms, *map(_without_empty_ends, forms)] if name == "strip" else forms
        return [(Argument(_is_nested(place.expression)),)]

    def _combine(self, parts: list[Place]) -> list[Template]:
        forms = [self._forms_of_part(part) for part in parts]
        while math.prod(map(len, forms)) > MOST_FORMS:
            longest = max(range(len(forms)), key=lambda at: len(forms[at]))
            forms[longest] = [(Argument(nested=True),)]
        return [sum(chosen, ()) for chosen in itertools.product(*forms)]

    def _forms_of_part(self, part: Place) -> list[Template]:
        match part.expression:
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                return self._forms_of_value(Place(value, part.scope))
            case ast.FormattedValue():
                return [(Argument(),)]
        return self.templates(part)

    def _forms_of_value(self, place: Place) -> list[Template]:
        """Return the forms of a value in an f-string: one argument unless it has words."""
        argument = Argument(_is_nested(place.expression))
        forms = [form if _is_told(form) else (argument,) for form in self.templates(place)]
        return list(dict.fromkeys(forms))

    def _leaves(self, node: ast.expr, scope: Scope, seen: tuple) -> Iterator[Place]:
        """Yield the expressions that may be the value, without names and conditions."""
        if scope.depth > DEEPEST or node in seen:
            yield Place(ast.Name("?", lineno=node.lineno), scope)
            return
        seen = (*seen, node)
        ways = self._follow_choice, self._follow_mapping, self._follow_name, self._follow_call
        for follow in ways:
            found = follow(node, scope, seen)
            if found is not None:
                for place in found:
                    yield from self._leaves(place.expression, place.scope.deeper(), seen)
                return
        yield Place(node, scope)

    def _follow_choice(self, node: ast.expr, scope: Scope, _seen: tuple) -> list[Place] | None:
        match node:
            case ast.IfExp(body=body, orelse=orelse):
                return [Place(body, scope), Place(orelse, scope)]
            case ast.BoolOp(op=ast.Or(), values=values):
                return [Place(value, scope) for value in values]
            case ast.NamedExpr(value=value):
                return [Place(value, scope)]
        return None

    def _follow_mapping(self, node: ast.expr, scope: Scope, seen: tuple) -> list[Place] | None:
        match node:
            case ast.Subscript(value=mapping):
                return self._values_of(Place(mapping, scope), seen)
            case ast.Call(func=ast.Attribute(value=mapping, attr="get"), args=[_, *default]):
                values = self._values_of(Place(mapping, scope), seen)
                return values and [*values, *(Place(value, scope) for value in default)]
        return None

    def _values_of(self, mapping: Place, seen: tuple) -> list[Place] | None:
        """Return the values of a dictionary that is written out."""
        found = [
            Place(value, leaf.scope)
            for leaf in self._leaves(*mapping, seen)
            if isinstance(leaf.expression, ast.Dict)
            for value in leaf.expression.values
        ]
        return found or None

    def _follow_name(self, node: ast.expr, scope: Scope, seen: tuple) -> list[Place] | None:
        if not isinstance(node, ast.Name):
            return None
        if node.id in scope.bound:
            return [Place(*scope.bound[node.id])]
        if scope.function is not None:
            assigned = self._assigned(node.id, scope, seen)
            if assigned:
                return assigned
            if node.id in _parameters(scope.function):
                return self._passed(node.id, scope)
        return self._constant(node.id, scope.module)

    def _assigned(self, name: str, scope: Scope, seen: tuple) -> list[Place]:
        """Return what a function assigns to a name, also with what it adds by `+=`."""
        nodes = list(ast.walk(scope.function))
        assigned = [place for node in nodes for place in self._values(node, name, scope, seen)]
        added = [
            node.value
            for node in nodes
            if isinstance(node, ast.AugAssign) and getattr(node.target, "id", "") == name
        ]
        longer = [
            Place(ast.BinOp(first, ast.Add(), more, lineno=more.lineno), place)
            for more in added
            for first, place in assigned
        ]
        return assigned + longer

    def _values(self, node: ast.AST, name: str, scope: Scope, seen: tuple) -> Iterator[Place]:
        match node:
            case ast.Assign(targets=[ast.Name(id=found)], value=value) if found == name:
                yield Place(value, scope)
            case ast.AnnAssign(target=ast.Name(id=found), value=ast.expr() as value) if (
                found == name
            ):
                yield Place(value, scope)
            case ast.NamedExpr(target=ast.Name(id=found), value=value) if found == name:
                yield Place(value, scope)
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=value):
                yield from self._unpacked(name, names, Place(value, scope), seen)

    def _unpacked(
        self, name: str, names: list[ast.expr], value: Place, seen: tuple
    ) -> Iterator[Place]:
        """Yield the element of a tuple that is assigned to a name."""
        for at, target in enumerate(names):
            if isinstance(target, ast.Name) and target.id == name:
                for leaf in self._leaves(value.expression, value.scope.deeper(), seen):
                    elements = getattr(leaf.expression, "elts", ())
                    if at < len(elements):
                        yield Place(elements[at], leaf.scope)

    def _passed(self, name: str, scope: Scope) -> list[Place] | None:
        """Return what the callers of a function pass as a parameter."""
        function = scope.function
        others = [module for module in self.modules.values() if function.name in module.functions]
        at = _parameters(function).index(name)
        found = []
        for call, caller in self._calls[_called_as(function, scope.module)]:
            if len(others) > 1 and not _can_call(caller.module, scope.module):
                continue
            value = _argument(call, at, name)
            if value is not None:
                found.append(Place(value, Scope(caller.module, caller.function, {}, scope.depth)))
        default = _defaults(function).get(name)
        if default is not None:
            found.append(Place(default, Scope(scope.module, None)))
        return found or None

    def _constant(self, name: str, module: Module) -> list[Place] | None:
        if name in module.constants:
            return [Place(module.constants[name], Scope(module, None))]
        if name in module.imports:
            source, original = module.imports[name]
            other = self.modules.get(source.removeprefix("mydata_like."))
            return self._constant(original, other) if other else None
        return None

    def _follow_call(self, node: ast.expr, scope: Scope, _seen: tuple) -> list[Place] | None:
        """Return what a function of the program returns, if it returns texts."""
        if not isinstance(node, ast.Call):
            return None
        module, function = self._find_function(node, scope.module)
        if function is None or _is_generator(function) or module.name == "core.formatting":
            return None
        bound = {
            name: (value, scope)
            for at, name in enumerate(_parameters(function))
            if (value := _argument(node, at, name)) is not None
        }
        inner = Scope(module, function, bound, scope.depth)
        returned = [
            Place(child.value, inner)
            for child in ast.walk(function)
            if isinstance(child, ast.Return) and child.value is not None
        ]
        return returned if any(_may_have_words(place.expression) for place in returned) else None

    def _find_function(
        self, call: ast.Call, module: Module
    ) -> tuple[Module, ast.FunctionDef | None]:
        match call.func:
            case ast.Name(id=name) if name in module.imports:
                source, name = module.imports[name]
                module = self.modules.get(source.removeprefix("mydata_like."), module)
            case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self"), attr=name):
                pass
            case _:
                return module, None
        found = module.functions.get(name, [])
        return module, found[0] if len(found) == 1 else None


def _parse(root: Path, path: Path) -> Module:
    name = ".".join(path.relative_to(root).with_suffix("").parts)
    return Module(name, ast.parse(path.read_text("utf-8")))


def _can_call(caller: Module, module: Module) -> bool:
    """Return whether a function that is called by a common name may be that of this module."""
    sources = {source for source, _ in caller.imports.values()}
    return caller is module or f"mydata_like.{module.name}" in sources


def _collect(node: ast.AST, function: ast.FunctionDef | None, found: list[Node]) -> None:
    """Add the nodes below a node, with the innermost function around each."""
    for child in ast.iter_child_nodes(node):
        found.append(Node(child, function))
        _collect(child, child if isinstance(child, ast.FunctionDef) else function, found)


def name_of(call: ast.Call) -> str:
    return getattr(call.func, "attr", None) or getattr(call.func, "id", "")


def _called_as(function: ast.FunctionDef, module: Module) -> str:
    """Return the name by which a function is called: `__init__` by that of its class."""
    if function.name != "__init__":
        return function.name
    return next(found.name for found in module.classes if function in found.body)


def _parameters(function: ast.FunctionDef) -> list[str]:
    names = [word.arg for word in (*function.args.args, *function.args.kwonlyargs)]
    return [name for name in names if name not in ("self", "cls")]


def _defaults(function: ast.FunctionDef) -> dict[str, ast.expr]:
    names, keywords = function.args.args, function.args.kwonlyargs
    last = names[len(names) - len(function.args.defaults) :]
    pairs = [*zip(last, function.args.defaults, strict=True)]
    pairs += zip(keywords, function.args.kw_defaults, strict=True)
    return {word.arg: value for word, value in pairs if value is not None}


def _argument(call: ast.Call, position: int | None, keyword: str) -> ast.expr | None:
    if position is not None and position < len(call.args):
        found = call.args[position]
        return None if isinstance(found, ast.Starred) else found
    return next((word.value for word in call.keywords if word.arg == keyword), None)


def _is_generator(function: ast.FunctionDef) -> bool:
    return any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))


def _may_have_words(node: ast.expr) -> bool:
    return any(
        isinstance(child, ast.Constant) and isinstance(child.value, str) and " " in child.value
        for child in ast.walk(node)
    )


def _is_nested(node: ast.expr) -> bool:
    """Return whether a value is a message itself, by its name."""
    match node:
        case ast.BoolOp(values=values):
            return any(map(_is_nested, values))
        case ast.Call(args=[value]) if name_of(node) in ("str", "plain", "format_text"):
            return _is_nested(value)
        case ast.Subscript(value=value):
            return _is_nested(value)
    named = node.func if isinstance(node, ast.Call) else node
    return (getattr(named, "attr", None) or getattr(named, "id", None)) in NESTED


def has_words(form: Template) -> bool:
    """Return whether a form has at least a word of its own."""
    return bool(re.search(r"[^\W\d_]{2}", "".join(part for part in form if isinstance(part, str))))


def is_sentence(form: Template) -> bool:
    """Return whether a form can be recognized by its own words, and no value of it is empty."""
    text = "".join(part if isinstance(part, str) else "%" for part in form)
    return has_words(form) and " " in text and not MEANINGLESS.fullmatch(text.rstrip())


def _is_told(form: Template) -> bool:
    """Return whether a value in a sentence is written out in it, unlike names such as `a_b`."""
    literal = "".join(part for part in form if isinstance(part, str))
    if form == (literal,):
        return "_" not in literal or " " in literal
    return has_words(form) and " " in literal


def _split_fields(text: str) -> Template:
    """Return a text with an argument for each field of `str.format`."""
    if not FIELD.search(text):
        return (text,)
    parts = enumerate(FIELD.split(text))
    return tuple(Argument(part in NESTED) if at % 2 else part for at, part in parts)


def _without_empty_ends(form: Template) -> Template:
    """Return a form that is stripped because its first or last argument may be empty."""
    if len(form) > 1 and form[0] == Argument(nested=True) and str(form[1]).startswith(" "):
        return (str(form[1]).lstrip(), *form[2:])
    if len(form) > 1 and form[-1] == Argument(nested=True) and str(form[-2]).endswith(" "):
        return form[:-1]
    return form


def _find_texts(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the literal sentences below a node, without docstrings and messages of the log."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.JoinedStr | ast.Constant):
            if re.fullmatch(
                r"f?['\"]([A-Z].*:|(.* ){3}.*\.|[A-Z{](.* ){5}.*)['\"]", ast.unparse(child)
            ):
                yield child
        elif not isinstance(child, ast.Expr) or not isinstance(child.value, ast.Constant):
            yield from _find_texts(child)


def _join(form: Template) -> Template:
    """Return a form in which no two texts and no two arguments follow each other."""
    joined: list[str | Argument] = []
    for part in form:
        if joined and isinstance(part, str) and isinstance(joined[-1], str):
            joined[-1] += part
        elif joined and isinstance(part, Argument) and isinstance(joined[-1], Argument):
            joined[-1] = Argument()
        elif part != "":
            joined.append(part)
    return tuple(joined) or ("",)


def format_template(form: Template) -> tuple[str, str]:
    """Return a template with %1, %2 and so on, and the numbers of its nested arguments."""
    numbers = itertools.count(1)
    text, nested = "", ""
    for part in form:
        if isinstance(part, str):
            assert not PLACEHOLDER.search(part), part
            text += part
        else:
            number = next(numbers)
            assert number < 10, form
            text += f"%{number}"
            nested += str(number) if part.nested else ""
    return text.strip(), nested


def format_templates() -> str:
    """Return the file with all templates."""
    reasons = {form: "" for text in REASONS for form in (text, text.lower())}
    templates = dict(sorted((Sources().list_templates() | reasons).items()))
    return json.dumps(templates, ensure_ascii=False, indent=0) + "\n"


def main() -> None:
    sys.stdout.write(format_templates())


if __name__ == "__main__":
    main()
