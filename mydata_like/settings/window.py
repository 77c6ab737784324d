"""Settings of the window and the tray."""

from typing import Annotated, Literal

from mydata_like.settings.about import About
from mydata_like.settings.section import Section


class Window(Section):
    """How the program shows itself."""

    start_at_login: Annotated[
        bool,
        About(
            "Start at login",
            "Whether the program starts, in the tray, when somebody logs in.",
            legacy=("start_automatically_on_login",),
        ),
    ] = False
    opens: Annotated[
        Literal["normal", "minimized", "maximized", "tray"],
        About(
            "Window at the start",
            "How the window shows itself when the program starts.",
            legacy=("on_start_run",),
        ),
    ] = "normal"
    theme: Annotated[
        Literal["system", "light", "dark"],
        About(
            "Colours",
            "Whether the window is light or dark, or follows the system.",
        ),
    ] = "system"
    language: Annotated[
        Literal["system", "en", "de"],
        About(
            "Language",
            "The language of the window, from its next start on; messages of the engine and the "
            "server stay English.",
        ),
    ] = "system"
    close_to_tray: Annotated[
        bool,
        About(
            "Go on when the window is closed",
            "Whether the program goes on in the tray, or as a small window where there is none, "
            "when its window is closed; if not, closing quits.",
        ),
    ] = True
    notify_finished: Annotated[
        bool, About("Tell of uploads", "Whether a message tells that files were uploaded.")
    ] = True
    notify_problem: Annotated[
        bool, About("Tell of problems", "Whether a message tells of problems that need somebody.")
    ] = True
    notify_approval: Annotated[
        bool,
        About(
            "Tell of the approval",
            "Whether a message tells that the uploader awaits its approval, and that it has it.",
        ),
    ] = True
    notify_silence: Annotated[
        bool,
        About(
            "Tell of silence",
            "Whether a message tells that no run has ended well for monitor.silent_hours.",
        ),
    ] = True
