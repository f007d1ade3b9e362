"""What R and Octave write is read as they meant it, or refused with what it is; and they read ours."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pmlopt import Mechanism, Secret
from pmlopt.cli.reading import read_prior
from pmlopt.errors import FileFormatError
from pmlopt.tables import column_counts

R = """
m <- matrix(c(.75, .25, .2, .8), 2, byrow = TRUE, dimnames = list(c("no", "yes"), c("TRUE", "FALSE")))
write.csv(m, "m1.csv"); write.csv2(m, "m2.csv"); write.csv(m, "m3.csv", quote = FALSE)
write.table(m, "m4.txt"); write.table(m, "m5.txt", dec = ",")
write.table(m, "m6.tsv", sep = "\\t", col.names = NA)
write.table(m, "m7.csv", sep = ";", dec = ",", qmethod = "double")
x <- c(rep("no", 60), rep("yes", 40)); y <- rep(c("u", "v"), 50); counts <- as.data.frame(table(x))
write.csv(counts, "named1.csv"); write.csv2(counts, "named2.csv"); write.csv(table(x, y)[, ], "joint1.csv")
write.csv(counts, "p1.csv", row.names = FALSE); write.csv2(counts, "p2.csv", row.names = FALSE)
write.table(counts, "p3.txt", row.names = FALSE)
write.table(counts, "p4.tsv", sep = "\\t", row.names = FALSE)
pairs <- as.data.frame(table(x, y)); write.csv2(pairs, "joint2.csv", row.names = FALSE)
write.csv(pairs, "named3.csv"); write.csv(pairs, "letters.csv", row.names = FALSE)
people <- data.frame(ill = x == "yes", age = c(NA, 30:128)); write.csv(people, "d1.csv")
write.csv2(people, "d2.csv"); write.table(people, "d3.tsv", sep = "\\t", row.names = FALSE, quote = FALSE)
saveRDS(people, "own1.rds"); save(people, file = "own2.RData"); write.table(people, "own3.txt")
"""
"""What people write in R, by what it is of."""

OCTAVE = """
P = [.75 .25; .2 .8]; inputs = ['no '; 'yes']; outputs = {'TRUE', 'FALSE'};
save('-v7', 'm1.mat', 'P', 'inputs', 'outputs'); save('-v6', 'm2.mat', 'P', 'inputs', 'outputs');
save('own1.mat', 'P'); save('-binary', 'own2.mat', 'P'); save('-hdf5', 'own3.mat', 'P');
save('own4.txt', 'P');
s.P = P; save('-v7', 'own5.mat', 's'); back = load('ours.mat');
save('-v7', 'm3.mat', '-struct', 'back');
"""


def run(program: str, code: str, folder: Path) -> None:
    command = {"Rscript": ["code"], "octave": ["--no-gui", "-q", "code"]}[program]
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    (folder / "code").write_text(code)
    subprocess.run([program, *command], cwd=folder, check=True, capture_output=True, timeout=300)


MECHANISM = Mechanism([[0.75, 0.25], [0.2, 0.8]], ["no", "yes"], ["TRUE", "FALSE"])


def check_matrices(folder: Path, count: int) -> None:
    found = sorted(folder.glob("m[0-9].*"))
    assert len(found) == count
    for path in found:
        assert Mechanism.load(path) == MECHANISM, path.name


def test_what_r_writes_is_read_or_named(tmp_path: Path) -> None:
    run("Rscript", R, tmp_path)
    check_matrices(tmp_path, 7)
    for path in tmp_path.glob("p*"):
        prior = read_prior(path)
        assert (prior.labels, prior.counts) == (("no", "yes"), (60, 40)), path.name
    for path in tmp_path.glob("joint*"):
        assert Secret.load(path).prior.counts == (50, 50), path.name
    letters = dict(
        zip((("no", "u"), ("yes", "u"), ("no", "v"), ("yes", "v")), (30, 20, 30, 20), strict=True)
    )
    tuples = read_prior(tmp_path / "letters.csv")
    assert dict(zip(tuples.labels, tuples.counts or (), strict=True)) == letters
    for path in tmp_path.glob("named*"):
        read = Secret.load if path.name == "named3.csv" else read_prior
        with pytest.raises(FileFormatError, match=r"numbers the rows: .* row\.names = FALSE in R"):
            read(path)
    for path in tmp_path.glob("d*"):
        assert column_counts(path, "ill") == {"FALSE": 60, "TRUE": 40}, path.name
    for name in ("own1.rds", "own2.RData"):
        assert column_counts(tmp_path / name, "ill") == {False: 60, True: 40}, name
    with pytest.raises(FileFormatError, match="row names of R"):
        column_counts(tmp_path / "own3.txt", "ill")


def test_what_octave_writes_is_read_or_named(tmp_path: Path) -> None:
    MECHANISM.save(tmp_path / "ours.mat")
    run("octave", OCTAVE, tmp_path)
    check_matrices(tmp_path, 3)
    words = {"own1.mat": "Octave's own", "own2.mat": "Octave's own", "own3.mat": "HDF5",
             "own4.txt": "Octave's own", "own5.mat": "no matrix of numbers"}  # fmt: skip
    for name, said in words.items():
        with pytest.raises(FileFormatError, match=said):
            Mechanism.load(tmp_path / name)


def test_numbers_come_back_from_octave_to_the_last_digit(tmp_path: Path) -> None:
    matrix = np.random.default_rng(1).dirichlet(np.ones(5), 4)
    Mechanism(matrix, ["01", "NA", "%", "a b"], ["1e5", "T", "", "x,y", "it's"]).save(
        tmp_path / "ours.mat"
    )
    run("octave", "load('ours.mat'); save('-v7', 'back.mat', 'P', 'inputs', 'outputs');", tmp_path)
    back = Mechanism.load(tmp_path / "back.mat")
    assert back == Mechanism.load(tmp_path / "ours.mat")
    assert back.matrix.tolist() == matrix.tolist()
