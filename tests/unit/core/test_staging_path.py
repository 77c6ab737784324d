from hypothesis import given
from hypothesis import strategies as st

from mydata_like.core.staging_path import staged_path

TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=300)
ODD = st.text(st.sampled_from("a. ~%0/\n\té漢"), max_size=300)
NAMES = st.one_of(TEXT, ODD)
PAIRS = st.tuples(NAMES, NAMES)


def components(path):
    return path.split("/")


def test_the_servers_own_rule_is_kept_where_it_works():
    path = staged_path("My Scan", 1, "sub dir/x%y", "a b's $(x) é.txt")

    assert path == "My%20Scan-1/sub%20dir/x%25y/a b's $(x) é.txt"


def test_a_dataset_without_a_name_is_untitled():
    assert staged_path("", 7, "", "a") == "untitled-7/a"


def test_a_long_name_keeps_its_beginning_and_its_extension():
    name = components(staged_path("d", 1, "", "scan" * 80 + ".tif"))[-1]

    assert len(name) == 255
    assert name.startswith("scanscan")
    assert name.endswith(".tif")


def test_long_names_of_datasets_stay_apart_in_one_component():
    one, other = (components(staged_path("x" * 400 + end, 1, "", "a"))[0] for end in "12")

    assert one != other
    assert max(len(one), len(other)) <= 255


def test_a_long_directory_of_many_bytes_becomes_one_component():
    path = staged_path("d", 1, "/".join(["漢" * 25] * 20), "a")

    assert len(components(path)) == 3
    assert len(path) < 600


def test_names_the_server_would_strip_do_not_meet():
    names = ["x", "x ", " x", "x\n", "\tx", "x\u3000"]

    assert len({staged_path("d", 1, "", name).strip() for name in names}) == len(names)


def test_a_file_never_stands_where_another_needs_a_folder():
    folder = staged_path("d", 1, "a b", "x").rpartition("/")[0]

    assert staged_path("d", 1, "", "a%20b") != folder


@given(TEXT, st.integers(1, 10**9), NAMES, NAMES)
def test_every_path_stays_below_and_fits_a_disk(dataset, number, directory, name):
    path = staged_path(dataset, number, directory, name)

    for component in components(path):
        assert component not in ("", ".", "..")
        assert len(component.encode()) <= 255
        assert component == component.strip()
    assert len(path.encode()) < 3600
    assert components(path)[0].endswith(f"-{number}")


@given(st.lists(PAIRS, min_size=2, max_size=8, unique=True), TEXT)
def test_two_files_never_share_a_path(pairs, dataset):
    assert len({staged_path(dataset, 5, *pair) for pair in pairs}) == len(pairs)


@given(PAIRS)
def test_a_file_named_like_another_ones_path_has_a_path_of_its_own(pair):
    path = staged_path("d", 5, *pair)
    name = components(path)[-1]
    directory = "/".join(components(path)[1:-1])

    if (directory, name) != pair:
        assert staged_path("d", 5, directory, name) != path


@given(TEXT, TEXT)
def test_datasets_never_share_a_folder(one, other):
    assert staged_path(one, 1, "", "a") != staged_path(other, 11, "", "a")
