"""The page of measurements shows what is recorded."""

import json

from benchmarks.page import make_tables


def a_row(name, speed, cpu=1.0, checks=""):
    return {
        "name": name,
        "checks": checks,
        "speed": [speed, speed, speed],
        "client_cpu": cpu,
        "server_cpu": 0.5,
        "busy": 0.5,
        "memory": 10.0,
    }


def record(folder, day, *rows, unit="MB/s"):
    case = {"case": "P1", "title": "large files", "unit": unit, "rows": rows}
    machine = {"processor": "AMD EPYC, with AES instructions"}
    written = json.dumps({"at": day, "machine": machine, "cases": [case]})
    (folder / f"{day}.json").write_text(written)


def test_the_newest_result_of_a_case_replaces_older_ones(tmp_path):
    record(
        tmp_path, "2026-01-01", a_row("mydata-like, sending alone, 1 channel", 9), a_row("scp", 1)
    )
    record(
        tmp_path, "2026-01-02", a_row("mydata-like, sending alone, 1 channel", 3), a_row("scp", 2)
    )

    (line,) = [line for line in make_tables(tmp_path).splitlines() if "P1" in line]

    assert "2026-01-01" not in make_tables(tmp_path)
    assert "### 2026-01-02, AMD EPYC\n" in make_tables(tmp_path)
    assert "| 3 | 2 | MB/s | 1.50 | 1.5 | 1.5 |" in line


def test_a_copy_is_compared_with_the_fastest_one_that_is_proven(tmp_path):
    record(
        tmp_path,
        "2026-01-01",
        a_row("mydata-like copy, a key file", 4, checks="MD5 of both sides"),
        a_row("rsync -a", 9, checks="its stream"),
        a_row("rsync -a, then rsync -anc", 8, checks="checksums of both sides"),
        a_row("md5sum, tar, md5sum there", 5, checks="MD5 of both sides"),
    )

    (line,) = [line for line in make_tables(tmp_path).splitlines() if "P1" in line]

    assert "| copy, a key file | rsync -a, then rsync -anc | 4 | 8 | MB/s | 0.50 |" in line


def test_a_whole_run_is_compared_with_the_same_proof_by_hand(tmp_path):
    record(
        tmp_path,
        "2026-01-01",
        a_row("mydata-like run, its own summary", 2),
        a_row("mydata-like run, the whole command", 4),
        a_row("scp", 1),
        a_row("md5sum, scp, md5sum there", 8, checks="MD5 of both sides"),
        unit="s",
    )

    (line,) = [line for line in make_tables(tmp_path).splitlines() if "P1" in line]

    assert "| run, the whole command | md5sum, scp, md5sum there | 4 | 8 | s | 2.00 |" in line
