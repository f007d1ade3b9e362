"""The code for R on the page of other programs, run by R where there is one."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from documents import ROOT

from pmlopt import Mechanism

PAGE = (ROOT / "docs" / "interfaces.md").read_text("utf-8")


def test_other_pages_read_labels_in_the_same_way() -> None:
    """`row.names = 1` and guessed classes make 1 of 01, TRUE of T, and an error of NA."""
    for page in (ROOT / "docs").rglob("*.md"):
        if "notes" not in page.parts:
            for call in re.findall(r"read\.(?:csv|table|delim)\([^)]*\)", page.read_text("utf-8")):
                assert 'colClasses = "character"' in call, page


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_labels_and_numbers_come_back_from_r(tmp_path: Path) -> None:
    code = re.findall(r"^```r\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0]
    inputs = ["01", "F", "T", "NA", "1e5", "1.10", "not ill", "it's"]
    outputs = ["TRUE", "NA", "1.0", "a b", "02"]
    matrix = np.random.default_rng(2).dirichlet(np.ones(5), 8)
    # 15 digits that R 4.2.2 reads as 0.22614337522633499
    matrix[0] = 0.226143375226335, 0.25, 0.25, 0.25, 0.25 - 0.226143375226335
    Mechanism(matrix, inputs, outputs).save(tmp_path / "mechanism.csv")
    known = Mechanism.load(tmp_path / "mechanism.csv")
    (tmp_path / "code.R").write_text(code)
    subprocess.run(
        ["Rscript", "code.R"], cwd=tmp_path, check=True, capture_output=True, timeout=120
    )
    back = Mechanism.load(tmp_path / "from_r.csv")
    assert (back.inputs, back.outputs) == (tuple(inputs), tuple(outputs))
    assert back.matrix.tolist() == known.matrix.tolist() == matrix.tolist()
