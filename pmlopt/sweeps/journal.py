"""What a running sweep keeps on disk, so that after a kill it goes on where it was."""

from __future__ import annotations

import csv
import hmac
import io
import json
import os
import reprlib
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np

from pmlopt.core.files import alone, check_target, json_bytes, read_bytes, write_whole
from pmlopt.errors import FileFormatError, SweepError
from pmlopt.programs.certificate import Restart
from pmlopt.sweeps.grid import Points
from pmlopt.sweeps.table import COLUMNS, Row, check_writable, csv_line, one_line, text_of, value_of

FORMAT = "pmlopt-sweep"
_RECORD = "sweep.json"


class Journal:
    """The rows of a sweep that is not done, beside the table it will become, and where its chains go on.

    For `table.csv` the rows are in `table.csv.part`, one line each on disk before the next point starts; the
    folder `table.csv.state` holds what the sweep is, and for each chain in its middle the `Restart` of its
    last point. A restart is on disk before the row of its point, so that a row is never without it.

    Each line ends with a digest of itself and of what the sweep is: a line that was changed, or is of another
    sweep, is refused. Whoever writes holds a lock on `table.csv.lock`, from before the first look at the
    other files until the end.

    Attributes:
        rows: those that are finished, by the position of their point in the grid.
    """

    def __init__(self, out: str | os.PathLike[str], points: Points, identity: Mapping[str, Any]) -> None:
        """Begin a journal, or go on with the one that is there.

        Raises:
            SweepError: the table is there, the journal is of another sweep, or it is being written.
            FileFormatError: the files cannot be written.
        """
        self.out = Path(out)
        check_target(self.out)
        check_writable(self.out)
        self.path = self.out.with_name(f"{self.out.name}.part")
        self.state = self.out.with_name(f"{self.out.name}.state")
        self._points = points
        self._key = json_bytes(identity)
        with ExitStack() as held:
            held.enter_context(alone(self.out, wait=0, error=SweepError))
            self._open(identity)
            self._lock = held.pop_all()

    def _open(self, identity: Mapping[str, Any]) -> None:
        try:
            if self.path.exists():
                self._check(identity)
            else:
                self._begin(identity)
            self._stream = self.path.open("r+b" if self.path.exists() else "x+b")
        except OSError as cause:
            raise FileFormatError(f"{self.path}: cannot be written: {cause}") from None
        try:
            self.rows = self._read()
        except BaseException:
            self._stream.close()
            raise

    def restart(self, position: int) -> Restart | None:
        """What the point at that position left for the next one, if it is there and whole."""
        try:
            with np.load(io.BytesIO(read_bytes(self._restart(position))), allow_pickle=False) as stored:
                arrays = {key[1:]: stored[key] for key in stored.files if key.startswith(".")}
                return Restart(str(stored["solver"]), arrays)
        except Exception:  # what zip and npy readers raise on a file that was cut short has no bounds
            return None

    def add(self, position: int, row: Row, restart: Restart | None) -> None:
        """Put a row on disk; before it what the next point of the chain starts from, if there is one."""
        if restart is not None:
            self._keep(position, restart)
        texts = [str(position), *(one_line(text_of(cell)) for cell in row.cells)]
        self._write(csv_line([*texts, self._digest(texts)]))
        self.rows[position] = row
        self._restart(position - 1).unlink(missing_ok=True)

    def close(self) -> None:
        """Close the journal and give up its lock, so that another call may go on with it."""
        self._stream.close()
        self._lock.close()

    def remove(self) -> None:
        """Remove the journal once the table is on disk."""
        self._stream.close()
        self.path.unlink(missing_ok=True)
        for file in [*self.state.glob("*.npz"), self.state / _RECORD]:
            file.unlink(missing_ok=True)
        with suppress(OSError):  # it holds what is not ours
            self.state.rmdir()
        self.close()

    def _begin(self, identity: Mapping[str, Any]) -> None:
        if self.out.exists():
            raise SweepError(f"{self.out}: is there already: give another name, or delete it")
        self.state.mkdir(exist_ok=True)
        for left in self.state.glob("*.npz"):
            left.unlink()
        write_whole(self.state / _RECORD, json_bytes({"format": FORMAT, **identity}))

    def _check(self, identity: Mapping[str, Any]) -> None:
        remedy = f"give another name than {self.out}, or delete {self.path} and {self.state}"
        try:
            stored = json.loads(read_bytes(self.state / _RECORD))
        except (FileFormatError, ValueError):
            stored = None
        if not isinstance(stored, dict) or stored.get("format") != FORMAT:
            raise SweepError(f"{self.path}: nothing beside it says of which sweep it is: {remedy}")
        asked = json.loads(json_bytes(identity))
        for key in asked:
            if stored.get(key) != asked[key]:
                old, new = (reprlib.repr(item) for item in (stored.get(key), asked[key]))
                raise SweepError(
                    f"{self.path}: is of another sweep, whose {key} is {old}, not {new}: {remedy}"
                )

    def _read(self) -> dict[int, Row]:
        """Read the rows on disk, and cut off a line that was cut short."""
        content = self._stream.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._stream.seek(len(whole))
        self._stream.truncate()
        if not whole:
            self._write(csv_line(["#", *self._points.names, *COLUMNS, "digest"]))
            return {}
        lines = csv.reader(io.StringIO(whole.decode(errors="replace"), newline=""))
        next(lines)
        return dict(self._row(cells) for cells in lines)

    def _digest(self, texts: Sequence[str]) -> str:
        """The digest of a line (HMAC-SHA256 keyed by what the sweep is), which the line ends with."""
        return hmac.digest(self._key, csv_line(texts).encode(errors="surrogatepass"), "sha256").hex()

    def _row(self, line: list[str]) -> tuple[int, Row]:
        *cells, digest = line or [""]
        try:
            if digest != self._digest(cells):
                raise ValueError("its digest is another")
            position = range(len(self._points.all)).index(int(cells[0]))
            entries = zip(COLUMNS, cells[1 + len(self._points.names) :], strict=True)
            row = Row(self._points.all[position], **{name: value_of(name, text) for name, text in entries})
        except (ValueError, IndexError) as cause:
            raise SweepError(
                f"{self.path}: the line {','.join(line)!r} was not written by this sweep ({cause}): "
                "delete it, and its point is solved again"
            ) from None
        return position, row

    def _write(self, line: str) -> None:
        try:
            self._stream.write(line.encode())
            self._stream.flush()
            os.fsync(self._stream.fileno())
        except OSError as cause:
            raise FileFormatError(f"{self.path}: cannot be written: {cause}") from None

    def _restart(self, position: int) -> Path:
        return self.state / f"{position}.npz"

    def _keep(self, position: int, restart: Restart) -> None:
        stream = io.BytesIO()
        arrays: dict[str, Any] = {f".{name}": array for name, array in restart.arrays.items()}
        np.savez(stream, solver=np.array(restart.solver), **arrays)
        write_whole(self._restart(position), stream.getvalue())
