"""`load` reads whatever was saved."""

from pathlib import Path
from typing import Any

import pytest

from pmlopt import PML, Ledger, Mechanism, Prior, Result, design, load, solve
from pmlopt.errors import FileFormatError


@pytest.mark.parametrize("ending", [".json", ".npz"])
def test_a_result_comes_back_with_its_claims(tmp_path: Path, ending: str) -> None:
    saved = solve(design(Prior([0.5, 0.3, 0.2], list("abc")), PML(0.4), "hamming"))
    saved.save(tmp_path / f"result{ending}")
    found: Result[Any] = load(tmp_path / f"result{ending}")
    assert (found.status, found.value, found.bound, found.level) == (
        saved.status, saved.value, saved.bound, saved.level
    )  # fmt: skip
    assert found.mechanism == saved.mechanism
    assert found.certificate.verify()
    assert found.summary() == saved.summary()


def test_a_mechanism_and_a_ledger_come_back(tmp_path: Path) -> None:
    flip = Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"])
    flip.save(tmp_path / "flip.csv")
    assert load(tmp_path / "flip.csv") == flip
    ledger = Ledger([0.5, 0.5], 2)
    ledger.save(tmp_path / "book.npz")
    assert isinstance(load(tmp_path / "book.npz"), Ledger)


def test_what_is_none_of_these_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    for name in ("x.json", "none.npz"):
        with pytest.raises(FileFormatError, match=name):
            load(tmp_path / name)
