"""Options that no command takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from cli.hostile import refused, write
from commands import run

DESIGN = "design --prior p.csv --epsilon 1 --utility hamming"
AUDIT = "audit m.json --prior p.csv"
SWEEP = "sweep --prior p.csv --epsilon 1,2 --utility hamming"
APPLY = "apply m.json data.csv --column level --keep id -o out.csv"
OVER = "sweep small.toml --over epsilon=0.1,0.2"
SECRET = "design --about joint.csv --epsilon 0.1 --utility hamming"
METRIC = f"{DESIGN} --privacy metric --distance distances.csv"
PLAN = "people-needed --for-bound --letters 3 --epsilon 1 --confidence-delta 0.1 --samples 1000"
ANSWER = "answer data.csv --count level=a,b,c --min-mass 0.1 --epsilon 1 -o out.csv"
ESTIMATE = "estimate m.json --data data.csv --column level"
SAMPLES = "audit drawn.csv --from-samples --prior p.csv"
INFORMATION = DESIGN.replace("hamming", "mutual-information")
NUMBERS = DESIGN.replace("p.csv", "numbers.csv")
LONG = "a" * 300


def values(command: str, **options: str) -> Iterator[str]:
    """A command with each of several values of an option in the place of its own."""
    for name, bad in options.items():
        option = f"--{name.replace('_', '-')}"
        rest = re.sub(rf" {option} \S+", "", command)
        yield from (f"{rest} {option}={value}" for value in bad.split(" "))


def more(command: str, text: str) -> Iterator[str]:
    """A command with each of several options more."""
    yield from (f"{command} {options.strip()}" for options in text.split("|"))


def instead(command: str, **words: str) -> Iterator[str]:
    """A command with each of several words in the place of one."""
    for word, others in words.items():
        (old,) = re.findall(rf"\b{word.replace('_', '.')}\b", command)
        yield from (command.replace(old, other) for other in others.split(" "))


BAD: Mapping[str, list[str]] = {
    "no command": ["nothing", "--nothing", "design --nothing"],
    "numbers that are none, or none of those that can be meant": [
        *values(DESIGN, epsilon="-1 nan inf x ''", tolerance="0 -1 nan x", time_limit="0 -1 nan x"),
        *values(DESIGN, radius="-1 nan inf 2.1", confidence_delta="0 1 -1 nan 2"),
        *values(AUDIT, epsilon="nan", envelope="0 1 nan x 0.1,,0.2 ''"),
        *values(APPLY, seed="-1 x 1.5 nan"),
    ],
    "outputs": [
        *values(DESIGN, outputs="0 2.5 100000000000 nan '' , a, a,a 1,1 1e400 a\udc80,b"),
        *more(
            DESIGN, f"--outputs={'9' * 5000} | --outputs=1,x -o out.csv"
        ),  # CSV would give text back
    ],
    "names": [
        *instead(DESIGN, hamming="hemming nowhere.csv m.json squared"),  # the letters are text
        *instead(NUMBERS, hamming="gains.csv"),
        *more(INFORMATION, "--minimise | --outputs 2 | --privacy approximate-pml --delta 0.1"),
        *more(
            DESIGN, "--minimise | --solver nothing | --privacy nothing | --privacy approximate-pml"
        ),
        *more(
            DESIGN, "--delta 0.1 | --privacy approximate-pml --delta -1 | --privacy ldp --delta 0.1"
        ),
        *more(
            DESIGN,
            "--privacy approximate-pml --delta 0.1 --radius 0.1 | --lower 1 | --region l1-ball",
        ),
        *more(
            DESIGN,
            "--privacy lip --lower -1 | --privacy ldp --radius 0.1 | --confidence-delta 0.1 --privacy ldp",
        ),
        *more(
            DESIGN, "--radius 0.1 --confidence-delta 0.1 | --region nothing --confidence-delta 0.1"
        ),
        *more(AUDIT, "--radius 0.1 --privacy ldp | --radius 0.1 --envelope 0.1"),
    ],
    "secrets, distances and gains": [
        *more(
            SECRET,
            "--prior p.csv | --counts p.csv | --confidence-delta 0.1 --region clopper-pearson | -o joint.csv",
        ),
        *values(
            SECRET,
            privacy="ldp metric g-leakage approximate-pml",
            about="nowhere.csv p.csv m.json .",
        ),
        *more(AUDIT, "--about joint.csv | --privacy pufferfish | --privacy metric"),
        *values(METRIC, distance="absolute nothing no.csv gains.csv"),
        *more(METRIC, "-o distances.csv"),
        *values(METRIC, prior="numbers.csv"),
        *more(
            DESIGN,
            "--privacy metric | --distance absolute | --privacy g-leakage | --gain gains.csv",
        ),
        *more(DESIGN, "--privacy g-leakage --gain nowhere.csv"),
        *more(NUMBERS, "--privacy g-leakage --gain gains.csv"),
    ],
    "where files go": [
        *more(
            DESIGN,
            f"-o out | -o out.dat | -o nowhere/out.csv | -o . | -o m.json/x.csv | -o {LONG}.json",
        ),
        *more(
            DESIGN, f"--mps nowhere/out.mps | --mps . | --mps {LONG} | --plot out.txt | --mps p.csv"
        ),
        *more(
            DESIGN,
            f"--plot nowhere/out.png | --plot {LONG}.png | -o same.csv --mps same.csv | -o p.csv",
        ),
        *more(DESIGN, "--plot p.csv | --constraint zeros=data.csv -o data.csv"),
        "export m.json --to ptable -o m.json",
        "explore --prior p.csv --utility gains.csv -o gains.csv",
        "solve small.toml --mps small.toml",
        *instead(APPLY, out_csv="data.csv m.json nowhere/out.csv", level="nothing id"),
        *instead(APPLY, data_csv="nowhere.csv", m_json="data.csv"),
        APPLY.replace("data.csv", "p.csv").replace("level", "count"),
    ],
    "sweeps": [
        *values(
            SWEEP,
            epsilon="'' , x nan inf -1 a:b:c 0:1 0:1:0 0:1:-1 0:1:2.5 0:1:2:3 0:inf:3 nan:1:3",
        ),
        *values(SWEEP, epsilon="0:1:1000000000", workers="0 -1 9999999999 x"),
        *more(SWEEP, f"-o out | -o out.dat | -o nowhere/out.csv | -o . | -o {LONG}.csv | -o p.csv"),
        *more(SWEEP, f"-o {'a' * 250}.csv"),  # the name fits, and that of its journal does not
        *more(SWEEP, "--mechanisms p.csv | --mechanisms nowhere/folder | small.toml"),
        *more("sweep", "--epsilon 1 | small.toml | small.toml --epsilon 1 --minimise"),
    ],
    "a number of a problem": [
        *values(
            OVER,
            over="'' epsilon epsilon= =1 epsilon=x epsilon=nan epsilon=-1 epsilon=0:1 epsilom=1 prior=1",
        ),
        *more(OVER, "--epsilon 1 | --prior p.csv | -o out | --plot out.bmp"),
        *instead(OVER, small_toml="nothing p.csv"),
        "sweep --over epsilon=1 --prior p.csv --utility hamming",
    ],
    "plans and answers": [
        *values(
            PLAN, letters="0 -1 x 1.5", confidence_delta="0 1 nan -1", samples="0 -1 x", target="2"
        ),
        "people-needed --for-bound --letters 4 --epsilon 1 --confidence-delta 0.1",
        *values(
            ANSWER, epsilon="0 -1 nan x", min_mass="-1 1 nan x 0.34", seed="-1"
        ),  # three classes
        *values(
            ANSWER,
            count="Level=a,b,c level=a,b,C level=a,b,c, level= level level=a,b level=a,a,b,c",
        ),
        *more(ANSWER, "--prior p.csv | --count level=a,b,c"),
        *instead(ANSWER, data_csv="nowhere.csv none.csv cut.csv"),
    ],
    "estimates and samples": [
        *values(
            ESTIMATE, confidence="0 1 -1 nan x", workload="nothing mean marginals ''", column="id"
        ),
        *more(ESTIMATE, "--method best | --intervals none"),
        *more("estimate m.json", "--data data.csv | --column level || --counts shares.csv"),
        *more(
            "estimate m.json", "--counts numbers.csv | --counts nowhere.csv"
        ),  # no outputs of its own
        *more(SAMPLES, "--envelope 0.1 | --privacy lip | --radius 0.1 | --epsilon=-1"),
        *values(SAMPLES, prior="numbers.csv"),
        "audit m.csv --from-samples --prior p.csv",  # shares, not counts
        f"{AUDIT} --confidence 0.9",
    ],
    "runs": ["bench --repeats 0"],
}


@pytest.mark.parametrize(
    "command",
    [
        *(DESIGN, AUDIT, SECRET, METRIC, SWEEP, APPLY, OVER, PLAN, ANSWER),
        *(ESTIMATE, SAMPLES, "solve small.toml"),
    ],
    ids=lambda command: " ".join(command.split()[:2]),
)
@pytest.mark.usefixtures("folder")
def test_without_the_bad_option_a_command_is_good(command: str) -> None:
    assert run(*shlex.split(command))


@pytest.mark.parametrize("kind", BAD)
def test_options_that_cannot_be_meant_are_refused(folder: Path, kind: str) -> None:
    write(folder, "none.csv", "")
    write(folder, "cut.csv", "id,level\n1,a\n2\n")
    for command in BAD[kind]:
        refused(folder, command)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (f"{DESIGN} --outputs=1e11", "at most 100000"),
        (f"{SWEEP.replace('1,2', '0:1:1000000000')}", "at most 100000 are solved at once"),
        (f"{SWEEP} --workers=9999999999", "1<=x<=256"),
    ],
)
def test_limits_are_told(folder: Path, command: str, said: str) -> None:
    assert said in refused(folder, command)


def test_a_missing_option_is_answered_with_its_values(folder: Path) -> None:
    message = refused(folder, "design --prior p.csv --epsilon 1")
    assert "Missing option '--utility'. hamming, absolute, squared (losses); mutual-inf" in message


@pytest.mark.parametrize(
    "command", ["audit m.json p.csv", "design p.csv --epsilon 1 --utility hamming"]
)
def test_a_prior_without_its_option_is_answered_with_it(folder: Path, command: str) -> None:
    assert "(p.csv): a prior is given by --prior FILE" in refused(folder, command)
    assert "--prior" not in refused(folder, "verify m.json p.csv")
