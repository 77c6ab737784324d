"""`mydata-like pause`, `resume` and `stop`: control the run in progress."""

from mydata_like.app.run_control import control_runs
from mydata_like.app.settings_service import load_settings
from mydata_like.cli.options import ConfigOption, SetOption
from mydata_like.cli.output import print_lines
from mydata_like.cli.stdin_commands import stopped_by_signals
from mydata_like.core.errors import RunError
from mydata_like.engine.pipeline import CancelFlag


def pause(config: ConfigOption = None, assignments: SetOption = None) -> None:
    """Pause the run in progress: send nothing until it is resumed."""
    _control(
        "pause", config, assignments, "The run is paused. Continue it with: mydata-like resume"
    )


def resume(config: ConfigOption = None, assignments: SetOption = None) -> None:
    """Continue a paused run, and check at once whether other causes of a pause are gone."""
    _control("resume", config, assignments, "The run continues.")


def stop(config: ConfigOption = None, assignments: SetOption = None) -> None:
    """Stop the run in progress; the next run continues, and a watch goes on."""
    _control("stop_run", config, assignments, "The run stops. The next run continues it.")


def _control(command: str, config: ConfigOption, assignments: SetOption, done: str) -> None:
    cancel = CancelFlag()
    settings = load_settings(config, assignments or ()).settings
    with stopped_by_signals(cancel):
        runs = control_runs(settings, config, command, cancel)
    if not runs:
        raise RunError("No run is in progress.", code="command.no-run")
    still = [problem for problem in runs if problem and command == "resume"]
    print_lines([f"The run is still paused: {still[0].message}"] if still else [done])
