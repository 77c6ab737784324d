from mydata_like.hostos.dependencies import list_components


def test_all_that_the_program_is_built_on_is_reported_with_its_licence():
    components = list_components()

    names = {component.name for component in components}
    assert {"PySide6_Essentials", "shiboken6", "paramiko", "bcrypt", "Python", "SQLite"} <= names
    assert [component.name for component in components if not component.licence] == []


def test_neither_the_program_itself_nor_its_tools_are_among_it():
    names = {component.name.lower() for component in list_components()}

    assert not names & {"mydata-like", "pytest", "ruff", "mypy"}
