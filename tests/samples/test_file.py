"""file.process reads and transforms a real file."""

import hashlib

import pytest

from turno.handlers import PermanentJobError
from turno.samples.file_process import FileProcess, check
from turno.testing import run_job

TEXT = "Uma linha\r\noutra linha aqui\núltima"


def test_a_given_text_is_counted_and_digested_byte_by_byte():
    run = run_job(FileProcess, {"content": TEXT, "name": "nota.txt", "transform": "upper"})
    assert run.files["nota.txt"] == TEXT.encode()
    assert (run.result["lines"], run.result["words"], run.result["bytes"]) == (3, 6, len(TEXT.encode()))
    assert run.result["sha256"] == hashlib.sha256(TEXT.encode()).hexdigest()
    assert run.result["common"]["linha"] == 2


TRANSFORMED = [
    ("none", TEXT),
    ("upper", "UMA LINHA\r\nOUTRA LINHA AQUI\nÚLTIMA"),
    ("lower", "uma linha\r\noutra linha aqui\núltima"),
    ("title", "Uma Linha\r\nOutra Linha Aqui\nÚltima"),
    ("reverse", "ahnil amU\r\niuqa ahnil artuo\namitlú"),
    ("number", "000001 Uma linha\r\n000002 outra linha aqui\n000003 última"),
]


@pytest.mark.parametrize(("transform", "expected"), TRANSFORMED)
def test_each_line_is_transformed_and_line_ends_stay(transform, expected):
    run = run_job(FileProcess, {"content": TEXT, "transform": transform})
    output = run.result["output"]
    assert output["file"] == f"input.{transform}.txt"
    written = run.files[output["file"]]
    assert written == expected.encode()
    assert output == {"file": output["file"], "bytes": len(written), "sha256": hashlib.sha256(written).hexdigest()}


def test_a_made_up_file_has_the_lines_that_were_asked_for():
    first, second = (run_job(FileProcess, {"lines": 250, "seed": 3}) for _ in range(2))
    assert first.result["lines"] == first.files["input.txt"].count(b"\n") == 250
    assert first.result == second.result


def test_an_empty_text_is_a_file_of_no_lines():
    run = run_job(FileProcess, {"content": ""})
    assert (run.result["lines"], run.result["words"], run.result["common"]) == (0, 0, {})
    assert run.files == {"input.txt": b"", "input.upper.txt": b""}


def test_a_file_that_is_not_what_was_written_is_a_permanent_error(tmp_path):
    (tmp_path / "a").write_bytes(b"other")
    with pytest.raises(PermanentJobError):
        check(tmp_path / "a", hashlib.sha256(b"this").hexdigest())
