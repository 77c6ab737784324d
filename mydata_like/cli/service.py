"""Installs, removes and shows the service that runs `mydata-like watch`."""

from collections.abc import Iterable, Iterator
from subprocess import list2cmdline

from mydata_like.app.service_setup import Service
from mydata_like.cli.report import print_lines

FAILED_EXIT = 1


def show(service: Service) -> int:
    """Print the definition and where it belongs; nothing is changed."""
    definition = service.definition
    encoding = "utf-16" if definition.content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    print_lines(
        [
            f"# {definition.file}",
            *definition.content.decode(encoding).rstrip().splitlines(),
            "# Then:",
            *(f"#   {list2cmdline(command)}" for command in definition.install),
        ]
    )
    return 0


def install(service: Service) -> int:
    """Install the service; what the system refuses is told with the command to type."""
    print_lines([f"Warning: {service.warning}"] if service.warning else [])
    outcomes = list(service.install())
    print_lines([f"{service.definition.file} is written."])
    left = service.definition.install[len(outcomes) :]
    problem = outcomes[-1].problem
    print_lines(_tell(problem, (outcomes[-1].command, *left)))
    if not problem:
        print_lines(["The service is installed and at work."])
    print_lines(service.definition.advice)
    return FAILED_EXIT if problem else 0


def uninstall(service: Service) -> int:
    """Remove the service."""
    outcomes = list(service.uninstall())
    if not outcomes:
        print_lines([f"There is no service here: {service.definition.file} does not exist."])
        return 0
    problem = outcomes[-1].problem
    print_lines([f"{service.definition.file} is removed."])
    print_lines(_tell(problem, [outcome.command for outcome in outcomes if outcome.problem]))
    return FAILED_EXIT if problem else 0


def _tell(problem: str, commands: Iterable[tuple[str, ...]]) -> Iterator[str]:
    if problem:
        yield f"The system did not do its part: {problem}."
        yield "Type this yourself:"
        yield from (f"  {list2cmdline(command)}" for command in commands)
