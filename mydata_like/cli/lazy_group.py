"""Commands that report their errors, and groups that import a command when it is used."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from mydata_like.cli.output import Shape, choose_shape, print_failure
from mydata_like.core.errors import Cancelled, UploaderError
from mydata_like.hostos.process import gc_disabled_for_imports


class Command(TyperCommand):
    """A command that ends with the exit code of an error, after printing it.

    The options `--json` and `--events` choose its form. A stop needs no words.
    """

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except UploaderError as error:
            options = {name: bool(ctx.params.get(name)) for name in ("events", "brief", "as_json")}
            self.report(error, choose_shape(**options))
            raise typer.Exit(error.exit_code) from None
        except Cancelled:
            raise typer.Exit(Cancelled.exit_code) from None

    def report(self, error: UploaderError, shape: Shape) -> None:
        print_failure(error, shape)


class LazyGroup(TyperGroup):
    """A group with commands that are named before they are imported.

    Each module imports at its head what it needs, and no command waits for what only others need.
    Help imports all of them, and so does an unknown name, since typer suggests similar ones.
    """

    # Each command with its module in `mydata_like.cli`, and the name of it there.
    lazy_commands: ClassVar[Mapping[str, tuple[str, str]]] = {}
    command_kind: ClassVar[type[Command]] = Command

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return list(dict.fromkeys([*super().list_commands(ctx), *self.lazy_commands]))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, imported if that has not been done; None if it is unknown."""
        known = self.list_commands(ctx)
        for name in [cmd_name] if cmd_name in known else known:
            if name not in self.commands:
                self.commands[name] = self._import_command(name, *self.lazy_commands[name])
        return super().get_command(ctx, cmd_name)

    def _import_command(self, name: str, module: str, attribute: str) -> Any:
        with gc_disabled_for_imports():
            found = getattr(import_module(f"mydata_like.cli.{module}"), attribute)
        if isinstance(found, typer.Typer):
            return get_group(found)
        app = typer.Typer(add_completion=False)
        app.command(name, cls=self.command_kind)(found)
        return get_command(app)
