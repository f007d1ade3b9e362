"""`pmlopt audit` on programs: files of traces, files and pipes of samples."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from commands import run, run_fully

TRACES = "trace,count\nequal,1\nother,4294967295\n"
INPUTS = (
    "input,trace,probability\nshort,fast,1/2\nshort,slow,1/2\nlong,fast,1/16\nlong,slow,15/16\n"
)
COINS = "heads\ntails\n" * 200


def run_json(*arguments: object, code: int = 0) -> Any:
    return json.loads(run_fully(*arguments, "--json", code=code).stdout)


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_traces_in_nats_and_bits(tmp_path: Path) -> None:
    found = run_json("audit", "--traces", write(tmp_path, "t.csv", TRACES), "--envelope", "0.25")
    assert found["levels"]["pml"] == pytest.approx(32 * math.log(2))
    assert found["levels_in_bits"]["pml"] == 32.0
    assert found["levels_in_bits"]["maximal leakage"] == 1.0
    assert found["levels_in_bits"]["after processing, but for 0.25"] == 2.0
    text = run("audit", "--traces", tmp_path / "t.csv")
    assert "32 bits" in text
    assert "3.35903615e-10 bits" in text


def test_a_claim_on_traces_is_decided_exactly(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", "trace,probability\na,3/10\nb,7/10\n")
    claim = ("audit", "--traces", path, "--epsilon", "1", "--delta")
    assert "holds" in run(*claim, "0.3")
    assert "FAILS" in run(*claim, "0.29", code=1)
    assert "holds" in run("audit", "--traces", path, "--epsilon", "1.21")
    assert "FAILS" in run("audit", "--traces", path, "--epsilon", "1.2", code=1)


def test_the_worst_public_input(tmp_path: Path) -> None:
    path = write(tmp_path, "t.csv", INPUTS)
    found = run_json("audit", "--traces", path)
    assert {one["input"]: one["levels_in_bits"]["pml"] for one in found["inputs"]} == {
        "short": 1.0,
        "long": 4.0,
    }
    lines = run("audit", "--traces", path).splitlines()
    assert lines[0] == "input long, traces 2"
    assert "FAILS" in run("audit", "--traces", path, "--epsilon", "1", code=1)


def test_other_forms_of_traces(tmp_path: Path) -> None:
    frame = pd.DataFrame({"low": [0, 1], "high": ["x", "y"], "count": [1, 3]})
    frame.to_parquet(tmp_path / "t.parquet")
    assert read_bits(tmp_path / "t.parquet") == 2.0
    lines = write(
        tmp_path,
        "t.jsonl",
        '{"trace": "a", "probability": "1/4"}\n{"trace": "b", "probability": "0.75"}\n',
    )
    assert read_bits(lines) == 2.0
    thirds = write(tmp_path, "f.csv", "trace,probability\na,1/3\nb,2/3\n")
    assert read_bits(thirds) == pytest.approx(math.log2(3))
    # what a program that keeps floats has written, whose sum is not one in decimals
    floats = write(tmp_path, "g.csv", "trace,probability\na,0.1\nb,0.2\nc,0.7000000000000001\n")
    assert read_bits(floats) == pytest.approx(math.log2(10))
    counts = write(tmp_path, "h.csv", 'Trace,Count\n"a,b",3.0\n"a\nb",1.0\n\u00e4,4\n')
    assert read_bits(counts) == 3.0
    assert "trace a\\nb, of probability 0.125" in run("audit", "--traces", counts)


def read_bits(path: Path) -> Any:
    return run_json("audit", "--traces", path)["levels_in_bits"]["pml"]


def test_samples_of_a_file(tmp_path: Path) -> None:
    path = write(tmp_path, "s.csv", "output\n" + COINS)
    claim = ("audit", "--samples", path, "--epsilon", "1", "--delta")
    found = run_json(*claim, "0.02")
    assert (found["samples"], found["outcomes"], found["holds"]) == (400, 2, True)
    assert found["tail"]["lower"] == 0
    assert run_json(*claim, "0.001", code=3)["holds"] is None
    claimed = run_json("audit", "--samples", path, "--epsilon", "0.5", "--deterministic", code=1)
    assert claimed["holds"] is False
    text = run("audit", "--samples", path)
    assert "level, at least" in text
    assert " nats = " in text
    assert "leakage but for 0.001, at most  not bounded" in text
    found = run_json("audit", "--samples", path)
    assert found["levels"]["leakage but for 0.001, at most"] is None
    assert found["tail"] is None


@pytest.mark.parametrize("claim", [("0.1",), ("0.1", "--delta", "0.2"), ("0",)])
def test_outputs_without_letters_refute_nothing(tmp_path: Path, claim: tuple[str, ...]) -> None:
    """A fair coin that nobody sees into: it may be the secret, or leak nothing."""
    asked = ("audit", "--samples", write(tmp_path, "c.txt", "a\nb\n" * 500), "--epsilon", *claim)
    found = run_json(*asked, code=3)
    assert (found["holds"], found["deterministic"]) == (None, False)
    assert (found["levels"]["level, at least"], found["tail"]["lower"]) == (0, 0)
    text = run(*asked, code=3)
    assert "is neither shown nor refuted" in text
    assert "or --deterministic if the program draws nothing" in text
    found = run_json(*asked, "--deterministic", code=1)
    assert (found["holds"], found["deterministic"]) == (False, True)
    assert found["levels"]["level, at least"] == pytest.approx(math.log(2), rel=1e-6)
    assert run_json(*asked, "--stop", code=3)["holds"] is None
    assert run_json(*asked, "--stop", "--deterministic", code=1)["holds"] is False


@pytest.mark.parametrize("claim", [(), ("--delta", "0.25")])
def test_the_claim_is_worded(tmp_path: Path, claim: tuple[str, ...]) -> None:
    path = write(tmp_path, "t.csv", "trace,probability\na,3/10\nb,7/10\n")
    lines = run("audit", "--traces", path, "--epsilon", "1", *claim, code=1).splitlines()
    but = ", but for 0.25," if claim else ""
    assert f"The claim of at most 1 nats{but} FAILS." in lines
    assert "The probability of more than 1 nats is 0.3." in lines


@pytest.mark.parametrize("header", ["answer", "0", '"x"', "Column 1"])
def test_a_first_line_that_may_be_a_header_is_no_sample(tmp_path: Path, header: str) -> None:
    path = write(tmp_path, "s.csv", f"{header}\n" + COINS)
    asked = ("audit", "--samples", path, "--deterministic")
    assert f"line 1, {header!r}, occurs once and may be a header" in run(*asked, code=2)
    # what it says to do: the line is a sample, or it is not
    sample = write(tmp_path, "t.csv", f"output\n{header}\n" + COINS)
    assert run_json("audit", "--samples", sample)["samples"] == 401
    assert run_json("audit", "--samples", write(tmp_path, "u.csv", COINS))["samples"] == 400
    # a pipe may be left before the line occurs again
    stopped = run_json(*asked, "--stop", "--epsilon", "1", code=3)
    assert (stopped["samples"], stopped["outcomes"]) == (400, 2)


@pytest.mark.parametrize("header", ["output", "Output", '"output"', "\ufeffoutput"])
def test_the_header_of_samples_is_recognised(tmp_path: Path, header: str) -> None:
    path = write(tmp_path, "s.csv", f"{header}\n" + COINS)
    assert run_json("audit", "--samples", path)["samples"] == 400


def test_pairs_and_numbers(tmp_path: Path) -> None:
    prior = write(tmp_path, "p.csv", "letter,probability\n1,0.5\n2,0.5\n")
    path = write(tmp_path, "s.csv", "letter,output\n" + "1,u\n2,v\n" * 100)
    found = run_json("audit", "--samples", path, "--prior", prior, "--epsilon", "0.3", code=1)
    least, bits = (found[key]["level, at least"] for key in ("levels", "levels_in_bits"))
    assert 0.5 < least < math.log(2)
    assert bits == pytest.approx(least / math.log(2))
    times = write(tmp_path, "t.txt", "1.5\n7.25\n1.75\n")
    assert run_json("audit", "--samples", times, "--edges", "5")["outcomes"] == 2


@pytest.mark.parametrize("header", ["", "letter,output\n", '"letter","output"\n'])
@pytest.mark.parametrize("delimiter", [";", "\t", "|", " "])
def test_pairs_may_have_other_delimiters_and_decimal_commas(
    delimiter: str, header: str, tmp_path: Path
) -> None:
    prior = write(tmp_path, "p.csv", "letter,probability\n1,0.5\n2,0.5\n")
    pairs = header + '"1",1.5\n2,7.25\n' * 100
    asked = ("--prior", prior, "--edges", "5", "--epsilon", "0.3")
    path = write(tmp_path, "s.csv", pairs)
    found = run_json("audit", "--samples", path, *asked, code=1)
    assert (found["samples"], found["outcomes"]) == (200, 2)
    write(tmp_path, "s.csv", pairs.replace(",", delimiter).replace(".", ","))
    assert run_json("audit", "--samples", path, *asked, code=1) == found


def test_a_first_pair_with_two_delimiters_needs_a_header(tmp_path: Path) -> None:
    prior = write(tmp_path, "p.csv", 'letter,probability\n"a;b",0.5\na,0.5\n')
    asked = ("audit", "--prior", prior, "--samples")
    path = write(tmp_path, "s.csv", "a;b,c\na;b,c\n")
    assert "line 1: 'a;b,c' has ',' and ';'" in run(*asked, path, code=2)
    write(tmp_path, "s.csv", "letter;output\na;b,c\na;b,c\n")
    assert run_json(*asked, path)["outcomes"] == 1


@pytest.mark.parametrize(("delta", "code", "verdict"), [
    ("0.05", 0, "confirmed"), ("0.0001", 3, "undecided"),
])  # fmt: skip
def test_a_stop_when_it_is_decided(tmp_path: Path, delta: str, code: int, verdict: str) -> None:
    path = write(tmp_path, "s.txt", COINS)
    asked = ("audit", "--samples", path, "--stop", "--epsilon", "1", "--delta", delta)
    found = run_json(*asked, code=code)
    assert found["holds"] == (True if verdict == "confirmed" else None)
    assert (found["samples"] < 400) == (code == 0)
    assert {"confirmed": "holds", "undecided": "nor refuted"}[verdict] in run(*asked, code=code)


def test_a_pipe_is_read_until_the_claim_is_decided() -> None:
    """The writer never ends: the reader does."""
    writer = subprocess.Popen(
        [sys.executable, "-c", "while True: print('heads\\ntails', flush=True)"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        reader = subprocess.run(
            [sys.executable, "-m", "pmlopt", "audit", "--samples", "-", "--stop", "--epsilon", "1",
             "--delta", "0.05", "--json"],
            stdin=writer.stdout, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
    finally:
        writer.kill()
        writer.wait()
        assert writer.stdout is not None
        writer.stdout.close()
    assert reader.returncode == 0, reader.stderr
    found = json.loads(reader.stdout)
    assert found["holds"] is True
    assert found["samples"] < 400


def test_an_audit_that_is_interrupted_prints_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounds are valid at every time, so also at the one that the user chooses."""

    def iterate_until_interrupted(*_: object, **__: object) -> Iterator[str]:
        yield from ["heads", "tails"] * 150
        raise KeyboardInterrupt

    monkeypatch.setattr("pmlopt.cli.program_audit.iterate_samples", iterate_until_interrupted)
    asked = (
        "audit",
        "--samples",
        tmp_path / "s.txt",
        "--stop",
        "--epsilon",
        "1",
        "--delta",
        "0.01",
    )
    found = run_json(*asked, code=3)
    assert 290 <= found["samples"] <= 300
    assert 0 <= found["tail"]["lower"] < 0.01 < found["tail"]["upper"] < 1


@pytest.mark.parametrize(("name", "text", "words"), [
    ("t.csv", "trace,count\na,1\na,2\n", "'a' occurs twice"), ("t.csv", "trace,count\na,-1\n", "'a' is -1"),
    ("t.csv", "trace,count\na,x\n", "not 'x'"), ("t.csv", "a,b,c\n1,2,3\n", "named count or probability"),
    ("t.csv", "trace,probability\na,1/3\nb,1/3\n", "sum to 2/3"),
    ("t.csv", "input,count\na,1\n", "give columns of the trace"),
    ("t.csv", "input,trace,count\nx,a,1\nx,a,2\n", "the trace 'a' occurs twice"),
    ("t.csv", "trace,frequency\na,1\n", "named count or probability"), ("t.json", "[1, 2", "t.json"),
    ("t.csv", "trace,count,probability\na,1,1\n", "named count or probability"),
    ("t.csv", "", "row"), ("t.csv", "trace,count\n", "row"),
    ("t.csv", "trace,count\na,0\n", "no trace occurs"),
    ("t.csv", "trace,probability\na,0.3\nb,0.6\n", "sum to 9/10"),
    ("t.csv", "input,trace,count\nx,a,1\ny,a,-2\n", "the public input 'y'"),
])  # fmt: skip
def test_files_of_traces_that_are_refused(tmp_path: Path, name: str, text: str, words: str) -> None:
    assert words in run("audit", "--traces", write(tmp_path, name, text), code=2)


@pytest.mark.parametrize(("text", "more", "words"), [
    ("a\nb\n", ("--edges", "1"), "line 1: the output: 'a'"),
    ("nan\n", ("--edges", "1"), "line 1: the output is nan: give finite"),
    ("a,b\n", ("--prior", "p.csv"), "is no sample, letter,output: 'a,b'; a header is 'letter,output'"),
    ("1\n", ("--prior", "p.csv"), "is no sample, letter,output"), ("", (), "no samples"),
    ("output\n", (), "no samples"), ("", ("--stop", "--epsilon", "1"), "no samples"),
    ("a\n", ("--stop",), "give --epsilon"), ("a\n", ("--delta", "0.1"), "give both"),
    ("a\n", ("--epsilon", "1", "--delta", "2"), "in [0, 1)"),
    ("a\n", ("--envelope", "0.1"), "--samples are draws"),
    ("a\n", ("--privacy", "ldp"), "are of PML"), ("a\n", ("--no-header",), "belong to MECHANISM"),
    ("a\n", ("--traces", "t.csv"), "give one of MECHANISM"),
])  # fmt: skip
def test_samples_that_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, more: tuple[str, ...], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "p.csv", "letter,probability\n1,0.5\n2,0.5\n")
    write(tmp_path, "t.csv", TRACES)
    assert words in run("audit", "--samples", write(tmp_path, "s.txt", text), *more, code=2)


def test_one_source_is_named(tmp_path: Path) -> None:
    assert "give one of MECHANISM" in run("audit", code=2)
    path = write(tmp_path, "t.csv", TRACES)
    assert "give one of MECHANISM" in run("audit", path, "--traces", path, code=2)
    assert "belong to --samples" in run("audit", "--traces", path, "--stop", code=2)
    assert "belong to --samples" in run("audit", "--traces", path, "--deterministic", code=2)
    assert "with --prior, pairs bound" in run(
        "audit", "--samples", path, "--prior", path, "--deterministic", code=2
    )
    assert "--traces are exact" in run("audit", "--traces", path, "--confidence", "0.9", code=2)
    assert "leave --confidence and --prior out" in run(
        "audit", "--traces", path, "--prior", path, code=2
    )
