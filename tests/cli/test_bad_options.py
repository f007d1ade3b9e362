"""Options that no command takes."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from cli.hostile import refused, write
from commands import run

DESIGN = "design --prior p.csv --epsilon 1 --utility hamming"
AUDIT = "audit m.json --prior p.csv"
SWEEP = "sweep --prior p.csv --epsilon 1,2 --utility hamming"
APPLY = "apply m.json data.csv --column level -o out.csv"
RECORDS = "record-leakage parity.json --query modular-sum --modulus 2 --records 3 --entropy 1"
TRADEOFF = "leakage-distortion --query modular-sum --modulus 2 --records 3 --entropy 1 --distortion 0.1"
SECRET = "design --about joint.csv --epsilon 0.1 --utility hamming"
METRIC = f"{DESIGN} --privacy metric --distance distances.csv"
PLAN = "plan --letters 3 --epsilon 1 --delta 0.1 --samples 1000"
HISTOGRAM = "histogram data.csv --column level --epsilon 1 --classes a,b,c -o out.csv"
ESTIMATE = "estimate m.json --data data.csv --column level"
SAMPLES = "audit drawn.csv --samples --prior p.csv"
LEAST = "least-leakage --prior p.csv --utility hamming --expected 0.4"
WORST = "worst-case --prior p.csv --utility hamming"
LONG = "a" * 300

COMMANDS = [
    "nothing",
    "--nothing",
    "design --nothing",
    # numbers that are none, or none of those that can be meant
    *(f"{DESIGN.replace('--epsilon 1', '')} --epsilon={value}" for value in ("-1", "nan", "inf", "x", "''")),
    f"{AUDIT} --epsilon=nan",
    *(f"{DESIGN} --tolerance={value}" for value in ("0", "-1", "nan", "x")),
    *(f"{DESIGN} --time-limit={value}" for value in ("0", "-1", "nan", "x")),
    *(f"{DESIGN} --radius={value}" for value in ("-1", "nan", "inf")),
    f"{DESIGN} --radius 2.1",
    f"{DESIGN} --delta 0.1 --privacy ldp",
    *(f"{DESIGN} --delta={value}" for value in ("0", "1", "-1", "nan", "2")),
    *(f"{AUDIT} --envelope={value}" for value in ("0", "1", "nan", "x", "0.1,,0.2", "''")),
    *(f"{APPLY} --seed={value}" for value in ("-1", "x", "1.5", "nan")),
    # outputs
    *(f"{DESIGN} --outputs={value}" for value in ("0", "2.5", "100000000000", "nan")),
    *(f"{DESIGN} --outputs={value}" for value in ("''", ",", "a,", "a,a", "1,1", "1e400", "9" * 5000)),
    f"{DESIGN} --outputs=a\udc80,b",
    f"{DESIGN} --outputs=1,x -o out.csv",  # a CSV file would give them back as text
    # names
    f"{DESIGN.replace('hamming', 'hemming')}",
    f"{DESIGN.replace('hamming', 'nowhere.csv')}",
    f"{DESIGN.replace('hamming', 'm.json')}",
    f"{DESIGN.replace('hamming', 'squared')}",  # of letters that are text
    f"{DESIGN} --minimise",
    f"{DESIGN.replace('hamming', 'mutual-information')} --minimise",
    f"{DESIGN.replace('hamming', 'mutual-information')} --outputs 2",
    f"{DESIGN.replace('p.csv', 'numbers.csv').replace('hamming', 'gains.csv')}",
    f"{DESIGN} --solver nothing",
    f"{DESIGN} --privacy nothing",
    f"{DESIGN} --privacy approximate-pml",
    f"{DESIGN} --slack 0.1",
    f"{DESIGN} --privacy approximate-pml --slack -1",
    f"{DESIGN} --privacy ldp --slack 0.1",
    f"{DESIGN} --privacy approximate-pml --slack 0.1 --radius 0.1",
    f"{DESIGN.replace('hamming', 'mutual-information')} --privacy approximate-pml --slack 0.1",
    f"{DESIGN} --lower 1",
    f"{DESIGN} --privacy lip --lower -1",
    f"{DESIGN} --privacy ldp --radius 0.1",
    f"{DESIGN} --radius 0.1 --delta 0.1",
    f"{DESIGN} --region l1-ball",
    f"{AUDIT} --radius 0.1 --privacy ldp",
    f"{DESIGN} --region nothing --delta 0.1",
    f"{AUDIT} --radius 0.1 --envelope 0.1",
    # secrets, distances and gains
    f"{SECRET} --prior p.csv",
    f"{SECRET} --counts p.csv",
    f"{SECRET} --delta 0.1 --region clopper-pearson",
    *(f"{SECRET} --privacy {name}" for name in ("ldp", "metric", "g-leakage", "approximate-pml")),
    f"{SECRET} -o joint.csv",
    *(f"{SECRET.replace('joint.csv', name)}" for name in ("nowhere.csv", "p.csv", "m.json", ".")),
    "audit m.json --about joint.csv --prior p.csv",
    f"{AUDIT} --privacy pufferfish",
    f"{DESIGN} --privacy metric",
    f"{DESIGN} --distance absolute",
    *(f"{METRIC.replace('distances.csv', name)}" for name in ("absolute", "nothing", "no.csv", "gains.csv")),
    f"{METRIC} -o distances.csv",
    f"{METRIC.replace('p.csv', 'numbers.csv')}",
    f"{AUDIT} --privacy metric",
    f"{DESIGN} --privacy g-leakage",
    f"{DESIGN} --gain gains.csv",
    f"{DESIGN} --privacy g-leakage --gain nowhere.csv",
    f"{DESIGN.replace('p.csv', 'numbers.csv')} --privacy g-leakage --gain gains.csv",
    # where files go
    *(f"{DESIGN} -o {name}" for name in ("out", "out.txt", "nowhere/out.csv", ".", "m.json/x.csv")),
    f"{DESIGN} -o {LONG}.json",
    *(f"{DESIGN} --mps {name}" for name in ("nowhere/out.mps", ".", LONG)),
    *(f"{DESIGN} --plot {name}" for name in ("out.txt", "nowhere/out.png", f"{LONG}.png")),
    f"{DESIGN} -o same.csv --mps same.csv",
    f"{DESIGN} -o p.csv",
    f"{DESIGN} --mps p.csv",
    f"{DESIGN} --plot p.csv",
    "noise-table m.json -o m.json",
    "count data.csv --column level -o data.csv",
    f"{DESIGN} --constraint zeros=data.csv -o data.csv",
    "explore --prior p.csv --utility gains.csv -o gains.csv",
    "solve small.toml --mps small.toml",
    f"{APPLY.replace('out.csv', 'data.csv')}",
    f"{APPLY.replace('out.csv', 'm.json')}",
    f"{APPLY.replace('out.csv', 'nowhere/out.csv')}",
    f"{APPLY.replace('level', 'nothing')}",
    f"{APPLY.replace('level', 'id')}",
    f"{APPLY.replace('data.csv', 'p.csv').replace('level', 'count')}",
    f"{APPLY.replace('data.csv', 'nowhere.csv')}",
    f"{APPLY.replace('m.json', 'data.csv')}",
    # sweeps
    *(f"{SWEEP.replace('1,2', value)}" for value in ("''", ",", "x", "nan", "inf", "-1", "a:b:c")),
    *(f"{SWEEP.replace('1,2', value)}" for value in ("0:1", "0:1:0", "0:1:-1", "0:1:2.5", "0:1:2:3")),
    *(f"{SWEEP.replace('1,2', value)}" for value in ("0:inf:3", "nan:1:3", "0:1:1000000000")),
    *(f"{SWEEP} --workers={value}" for value in ("0", "-1", "9999999999", "x")),
    *(f"{SWEEP} -o {name}" for name in ("out", "out.txt", "nowhere/out.csv", ".", f"{LONG}.csv", "p.csv")),
    f"{SWEEP} -o {'a' * 250}.csv",  # the name fits, and that of its journal does not
    f"{SWEEP} --mechanisms p.csv",
    f"{SWEEP} --mechanisms nowhere/folder",
    f"{SWEEP} small.toml",
    "sweep --epsilon 1",
    "sweep small.toml",
    "sweep small.toml --epsilon 1 --minimise",
    # queries
    *(f"{RECORDS} --records={value}" for value in ("0", "-1", "x", "1000000000000")),
    *(f"{RECORDS} --modulus={value}" for value in ("0", "-1", "3", "1" + "0" * 30)),
    *(f"{RECORDS} --letters={value}" for value in ("0", "-1", "100000000", "x")),
    *(f"{RECORDS} --entropy={value}" for value in ("-1", "nan", "inf", "9", "x", "''")),
    *(f"{TRADEOFF.replace('--distortion 0.1', '')} --distortion={value}" for value in ("-1", "nan", "x")),
    f"{TRADEOFF} -o out.txt",
    # plans and histograms
    *(f"{PLAN.replace('--letters 3', '')} --letters={value}" for value in ("0", "-1", "x", "1.5")),
    *(f"{PLAN.replace('--delta 0.1', '')} --delta={value}" for value in ("0", "1", "nan", "-1")),
    *(f"{PLAN.replace('--samples 1000', '')} --samples={value}" for value in ("0", "-1", "x")),
    f"{PLAN} --target 2",
    "plan --letters 4 --epsilon 1 --delta 0.1",
    *(f"{HISTOGRAM.replace('--epsilon 1', '')} --epsilon={value}" for value in ("0", "-1", "nan", "x")),
    *(f"{HISTOGRAM} --min-mass={value}" for value in ("-1", "1", "nan", "x")),
    f"{HISTOGRAM} --min-mass=0.34",  # three classes
    f"{HISTOGRAM} --seed=-1",
    f"{HISTOGRAM.replace('level', 'Level')}",
    *(f"{HISTOGRAM.replace('a,b,c', value)}" for value in ("a,b,C", "a,b,c,", "''")),
    *(f"{HISTOGRAM.replace('data.csv', name)}" for name in ("nowhere.csv", "none.csv", "cut.csv")),
    f"{HISTOGRAM.replace('a,b,c', 'a,b')}",
    f"{HISTOGRAM.replace('a,b,c', 'a,a,b,c')}",
    # estimates and samples
    *(f"{ESTIMATE} --confidence={value}" for value in ("0", "1", "-1", "nan", "x")),
    *(f"{ESTIMATE} --workload={value}" for value in ("nothing", "mean", "marginals", "''")),
    f"{ESTIMATE} --method best",
    f"{ESTIMATE} --intervals none",
    "estimate m.json --data data.csv",
    "estimate m.json --column level",
    "estimate m.json",
    "estimate m.json --counts shares.csv",
    "estimate m.json --counts numbers.csv",  # outputs that are none of the mechanism's
    "estimate m.json --counts nowhere.csv",
    f"{ESTIMATE.replace('level', 'id')}",
    f"{SAMPLES} --envelope 0.1",
    f"{SAMPLES} --privacy lip",
    f"{SAMPLES} --radius 0.1",
    f"{SAMPLES} --epsilon=-1",
    f"{SAMPLES.replace('p.csv', 'numbers.csv')}",
    "audit m.csv --samples --prior p.csv",  # shares, not counts
    f"{AUDIT} --confidence 0.9",
    # the least leakage and the worst case
    *(f"{LEAST.replace('--expected 0.4', '')} --expected={value}" for value in ("nan", "inf", "-1", "x")),
    f"{LEAST.replace('--expected 0.4', '')}",
    f"{LEAST.replace('hamming', 'mutual-information')}",
    *(f"{LEAST} --solver={value}" for value in ("clarabel", "magic")),
    f"{LEAST.replace('--expected 0.4', '--worst=-1')}",
    *(f"{WORST} --threshold={value}" for value in ("0", "-1", "9", "x")),
    f"{WORST} --threshold 2 --epsilon 1",
    *(f"{WORST} {what}" for what in ("--tolerance 0", "-o out.json", "--mps out.mps", "--plot out.png")),
    f"{WORST} --threshold 2 --solver highs",
    f"{WORST.replace('p.csv', 'shares.csv')} --delta 0.1",
    f"{WORST} --ties nothing",
    "bench --repeats 0",
]  # fmt: skip


@pytest.mark.parametrize(
    "command",
    [
        *(DESIGN, AUDIT, SECRET, METRIC, SWEEP, APPLY, RECORDS, TRADEOFF, PLAN, HISTOGRAM),
        *(ESTIMATE, SAMPLES, LEAST, WORST, "solve small.toml"),
    ],
    ids=lambda command: " ".join(command.split()[:2]),
)
@pytest.mark.usefixtures("folder")
def test_without_the_bad_option_a_command_is_good(command: str) -> None:
    assert run(*shlex.split(command))


@pytest.mark.parametrize(
    "command", COMMANDS, ids=lambda command: command[:100].encode("unicode_escape").decode()
)
def test_options_that_cannot_be_meant_are_refused(folder: Path, command: str) -> None:
    write(folder, "none.csv", "")
    write(folder, "cut.csv", "id,level\n1,a\n2\n")
    refused(folder, command)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (f"{DESIGN} --outputs=1e11", "at most 100000"),
        (f"{SWEEP.replace('1,2', '0:1:1000000000')}", "at most 100000 are solved at once"),
        (f"{RECORDS} --letters=100000000", "MOST_LETTERS raises it"),
        (f"{SWEEP} --workers=9999999999", "1<=x<=256"),
    ],
)
def test_limits_are_told(folder: Path, command: str, said: str) -> None:
    assert said in refused(folder, command)
