"""The program looks as the settings say, from the first moment of its next start on."""

import pytest
from PySide6.QtCore import QLocale, QTranslator

from mydata_like.app.settings_service import save_settings
from mydata_like.gui.theme import colours, style
from mydata_like.gui.theme.colours import DARK, LIGHT
from mydata_like.gui.theme_settings import ThemeSettings, apply_first_appearance
from mydata_like.gui.window_state import WindowState


@pytest.fixture(autouse=True)
def undressed(qapp):
    yield
    style.apply(qapp, "light")
    for translator in qapp.findChildren(QTranslator):
        qapp.removeTranslator(translator)
        translator.deleteLater()
    QLocale.setDefault(QLocale.c())


def test_colours_follow_the_settings_at_once(qapp, open_context, tmp_path, qtbot):
    style.apply(qapp, "light")
    config = tmp_path / "settings.toml"
    save_settings(config, {"window.theme": "dark"})
    context = open_context(config)
    appearance = ThemeSettings(context.controller, context.memory, context.controller)
    qtbot.waitUntil(lambda: colours.current_shades() == DARK)
    save_settings(config, {"window.theme": "light"})
    context.controller.reload_settings()
    qtbot.waitUntil(lambda: colours.current_shades() == LIGHT)
    assert appearance.parent() is context.controller


def test_the_first_start_has_the_colours_and_the_language_from_the_beginning(qapp, tmp_path):
    config = tmp_path / "settings.toml"
    save_settings(config, {"window.theme": "dark", "window.language": "de"})
    style.apply(qapp, "light")

    apply_first_appearance(qapp, WindowState(), config)

    assert colours.current_shades() == DARK
    assert QLocale().language() == QLocale.Language.German
    assert not qapp.windowIcon().isNull()


def test_while_the_settings_cannot_be_read_the_last_choices_count(qapp, tmp_path):
    config = tmp_path / "settings.toml"
    save_settings(config, {"window.theme": "dark"})
    apply_first_appearance(qapp, WindowState(), config)
    style.apply(qapp, "light")
    config.write_text("[window\n")

    apply_first_appearance(qapp, WindowState(), config)

    assert colours.current_shades() == DARK


def test_what_is_remembered_wrongly_counts_as_nothing(qapp, tmp_path):
    config = tmp_path / "settings.toml"
    config.write_text("[window\n")
    memory = WindowState()
    memory.setValue("look/theme", "purple")
    memory.setValue("look/language", 7)
    apply_first_appearance(qapp, memory, config)
    assert colours.current_shades() in (LIGHT, DARK)
