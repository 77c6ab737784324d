"""Listings of servers that page in ways of their own."""

import pytest

from mydata_like.catalogues.mytardis.api import HttpServer
from mydata_like.core.errors import ServerUnavailableError, TransientError
from mydata_like.core.model import DatasetId
from tests.fakes.web import page, reply


@pytest.fixture
def server(api_client):
    return HttpServer(api_client)


def row(number, dataset=21):
    return {
        "id": number,
        "dataset": f"/api/v1/dataset/{dataset}/",
        "directory": "",
        "filename": f"{number}.tif",
        "size": 3,
        "md5sum": "9" * 32,
        "modification_time": "2026-01-05T09:00:00",
        "replicas": [],
    }


def serve(web, answer):
    def rule(asked):
        if asked.path != "mydata_dataset_file/":
            return None
        return answer(int(asked.query["offset"]), int(asked.query["limit"]))

    web.rules.append(rule)


def ids(server, offset=0):
    return [record.id for record in server.list_datafiles(DatasetId(21), offset)]


def test_all_pages_are_read(web, server):
    rows = [row(number) for number in range(2500)]
    serve(web, lambda offset, limit: page(*rows[offset : offset + limit], total=2500))

    assert ids(server) == list(range(2500))
    assert len(web.asked) == 3


def test_only_what_is_new_is_read_from_an_offset_on(web, server):
    rows = [row(number) for number in range(30)]
    serve(web, lambda offset, limit: page(*rows[offset : offset + limit], total=30))

    assert ids(server, offset=25) == [25, 26, 27, 28, 29]


def test_a_server_that_ignores_the_limit_is_read_to_its_end(web, server):
    rows = [row(number) for number in range(50)]
    serve(web, lambda offset, _: page(*rows[offset : offset + 20], total=50))

    assert ids(server) == list(range(50))


def test_a_server_that_sends_everything_at_once_is_read_once(web, server):
    rows = [row(number) for number in range(50)]
    serve(web, lambda offset, limit: page(*rows))

    assert ids(server) == list(range(50))
    assert len(web.asked) == 1


def test_a_server_that_ever_repeats_its_first_page_is_not_read_for_ever(web, server):
    rows = [row(number) for number in range(20)]
    serve(web, lambda offset, limit: page(*rows, total=50))

    with pytest.raises(TransientError):
        ids(server)

    assert len(web.asked) < 10


def test_a_record_that_a_page_shows_twice_comes_once(web, server):
    serve(web, lambda offset, limit: page(row(1), row(1), row(2), total=2))

    assert ids(server) == [1, 2]


def test_records_created_between_pages_are_found_and_none_comes_twice(web, server):
    rows = [row(number) for number in range(30)]

    def answer(offset, _):
        rows.insert(0, row(1000 + len(rows))) if len(rows) < 33 else None
        return page(*rows[offset : offset + 10], total=len(rows))

    serve(web, answer)

    found = ids(server)

    assert len(found) == len(set(found)) == 33


def test_records_that_vanish_between_pages_hide_no_others(web, server):
    rows = [row(number) for number in range(30)]

    def answer(offset, _):
        part, total = rows[offset : offset + 10], len(rows)
        if total > 27:
            del rows[0]
        return page(*part, total=total)

    serve(web, answer)

    assert set(range(3, 30)) <= set(ids(server))


def test_records_of_another_dataset_are_not_believed(web, server):
    serve(web, lambda offset, limit: page(row(1, dataset=99)))

    with pytest.raises(ServerUnavailableError):
        ids(server)


def test_records_are_fetched_by_id_in_questions_of_a_bearable_length(web, server):
    def rule(asked):
        if "/set/" not in asked.path:
            return None
        numbers = asked.path.split("/")[2].split(";")
        rows = [row(int(number)) for number in numbers if number != "7"]
        return reply(body={"objects": rows, "not_found": []})

    web.rules.append(rule)

    found = server.fetch_datafiles(list(range(700)))

    assert len(found) == 699
    assert len(web.asked) == 3
