"""Large matrices of a result are arrays of its NPZ file: they come back as they were, or are refused."""

import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from pmlopt import PML, ExpectedLoss, Mechanism, Prior, design, load, solve
from pmlopt.core.matrices.formats import read_matrix
from pmlopt.errors import FileFormatError
from pmlopt.verification.verify_saved import load_with_verdict, verify_file

SIZE = 320


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result of so many letters that its losses are an array in the file."""
    path = tmp_path_factory.mktemp("saved") / "result.npz"
    solve(design(Prior.uniform(SIZE), PML(1.0), "hamming")).save(path)
    return path


def list_members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_members(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def as_npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


TABLE = "metadata/certificate/table.npy"


def test_the_table_is_an_array_of_bytes_and_comes_back_as_floats(saved: Path) -> None:
    members = list_members(saved)
    assert set(members) == {"matrix.npy", "about.npy", TABLE}
    assert len(members[TABLE]) < SIZE * SIZE + 200
    about = json.loads(np.load(io.BytesIO(members["about.npy"])).tobytes())
    assert about["metadata"]["certificate"]["table"] == []
    found = load(saved)
    assert np.array_equal(found.certificate.table, 1 - np.eye(SIZE))
    assert found.certificate.table.dtype == np.float64
    assert verify_file(saved).holds
    again, verdict = load_with_verdict(saved)
    assert again == found
    assert verdict is not None
    assert verdict.holds


def test_a_file_with_the_table_in_its_text_is_read_as_before(saved: Path, tmp_path: Path) -> None:
    members = list_members(saved)
    about = json.loads(np.load(io.BytesIO(members["about.npy"])).tobytes())
    table = np.load(io.BytesIO(members.pop(TABLE)))
    about["metadata"]["certificate"]["table"] = table.astype(float).tolist()
    text = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    path = write_members(tmp_path / "old.npz", members | {"about.npy": as_npy(text)})
    assert load(path) == load(saved)
    assert verify_file(path).holds


def test_a_table_that_was_changed_is_found(saved: Path, tmp_path: Path) -> None:
    table = 1 - np.eye(SIZE)
    table[0, :] = 0.5
    path = write_members(tmp_path / "m.npz", list_members(saved) | {TABLE: as_npy(table)})
    verdict = verify_file(path)
    assert verdict.holds is False
    assert {"value", "bound"} & {claim.name for claim in verdict.failures}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.full((SIZE, SIZE), np.nan), r"table\[0\]\[0\] is nan"),
        (np.zeros((SIZE, SIZE + 1)), "must be 320"),
        (np.zeros((SIZE, SIZE), dtype=complex), "complex"),
        (np.zeros((SIZE, SIZE), dtype=bool), "truth values"),
        (np.zeros(SIZE * SIZE), "dimension"),
        (np.zeros((SIZE, SIZE, 1)), "dimension"),
        (np.zeros((2, 2)), "must be 320"),
    ],
)
def test_a_table_of_another_form_is_refused(
    saved: Path, tmp_path: Path, table: np.ndarray, message: str
) -> None:
    path = write_members(tmp_path / "m.npz", list_members(saved) | {TABLE: as_npy(table)})
    with pytest.raises(FileFormatError, match=message):
        load(path)


@pytest.mark.parametrize(
    "name",
    ["metadata/certificate/values", "metadata/table", "metadata/certificate/mechanism", "metadata/",
     "metadata/certificate/multipliers/0", "metadata/attempts/certificate"],
)  # fmt: skip
def test_an_array_without_a_place_is_refused(saved: Path, tmp_path: Path, name: str) -> None:
    extra = {f"{name}.npy": as_npy(np.zeros((SIZE, SIZE)))}
    path = write_members(tmp_path / "m.npz", list_members(saved) | extra)
    with pytest.raises(FileFormatError, match="no place"):
        load(path)


def test_a_missing_table_is_refused(saved: Path, tmp_path: Path) -> None:
    members = list_members(saved)
    del members[TABLE]
    with pytest.raises(FileFormatError, match="table"):
        load(write_members(tmp_path / "m.npz", members))


def test_other_losses_come_back_and_small_files_stay_as_they_were(tmp_path: Path) -> None:
    losses = np.random.default_rng(0).random((SIZE, SIZE))
    result = solve(design(Prior.uniform(SIZE), PML(0.0), ExpectedLoss(losses)))
    for ending in (".npz", ".json"):
        result.save(tmp_path / f"m{ending}")
        assert np.array_equal(load(tmp_path / f"m{ending}").certificate.table, losses)
    small = tmp_path / "small.npz"
    solve(design([0.5, 0.5], PML(0.2), "hamming")).save(small)
    assert set(list_members(small)) == {"matrix.npy", "about.npy"}


def test_large_matrices_of_metadata_of_ones_own_come_back_as_arrays(tmp_path: Path) -> None:
    path, large = tmp_path / "m.npz", np.random.default_rng(0).random((400, 300))
    given = {"a": {"b": large, "c/d": large}, "small": np.ones((2, 2))}
    Mechanism([[0.5, 0.5]]).save(path, given)
    found = read_matrix(path).metadata
    assert isinstance(found["a"]["b"], np.ndarray)
    assert np.array_equal(found["a"]["b"], large)
    # a key with the separator of paths stays in the text
    assert found["a"]["c/d"] == large.tolist()
    assert found["small"] == [[1.0, 1.0], [1.0, 1.0]]
