"""Streams of many people over one Markov chain, with their file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np

from pmlopt.core.files import disk
from pmlopt.core.numbers.arrays import FloatArray, IntArray, Label, Labels, abbreviate
from pmlopt.core.records.converters import to_plain
from pmlopt.core.records.fields import Record, Shape
from pmlopt.core.records.record import parse_json, read_record
from pmlopt.data.sampling.categorical import Seed, make_random_bits
from pmlopt.errors import FileFormatError, MechanismError, PrivacyError
from pmlopt.programs.streams.stream import Stream, StreamDeclaration
from pmlopt.releases.accounts.array_files import open_exclusively

FORMAT = "pmlopt-streams-2"


@dataclass(frozen=True, eq=False)
class StreamsFile(Record):
    """The serializable content of a streams file: the declaration, and the tree of release histories.

    Attributes:
        first: the stream of a person of whom nothing is released.
        before: (K,) for each release the one before it, counted from 1, or 0.
        told: (K,) its output.
        emitted: (K, N) the chance of the output in each state.
        people: their names, and their last release.
    """

    first: StreamDeclaration
    before: Annotated[IntArray, Shape("K")]
    told: Labels
    emitted: Annotated[FloatArray, Shape("K", "states")]
    people: tuple[tuple[Label, int], ...]

    def __post_init__(self) -> None:
        count = len(self.before)
        if (
            len(self.told) != count
            or (self.before < 0).any()
            or (self.before > np.arange(count)).any()
        ):
            raise FileFormatError("the releases are no tree: each comes after the one before it")
        if any(not 0 <= place <= count for _, place in self.people):
            raise FileFormatError(f"a person has a release that is none of the {count}")


def _digest_content(held: Any) -> str:
    """Compute the digest of a file's plain data."""
    return hashlib.sha256(disk.encode_json_bytes(held)).hexdigest()


class Streams:
    """The sequential releases of many independent people over one Markov chain.

    People to whom the same was revealed share their belief and the design of their next release. The time of
    each person is counted from the first release; who is known and has no state at a step reveals nothing at
    it.

    Args:
        first: the stream of a person of whom nothing is released yet.

    Raises:
        PrivacyError: something is released in it.

    Examples:
        >>> from pmlopt import PML, Chain
        >>> chain = Chain([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], ["home", "out"])
        >>> many = Streams(Stream(chain, PML(0.4), "hamming"))
        >>> sorted(many.release({"ann": "home", "bob": "out"}, seed=1))
        ['ann', 'bob']
        >>> many.people, round(many.level, 6)
        (('ann', 'bob'), 0.36)
    """

    def __init__(self, first: Stream) -> None:
        if first.history:
            raise PrivacyError("something is released in the stream: give one of which nothing is")
        self._streams: list[Stream | None] = [first.copy()]
        self._before: list[int] = []
        self._after: dict[tuple[int, Label, bool], int] = {}
        self._place: dict[Label, int] = {}
        self._told: list[tuple[Label, FloatArray]] = []

    @property
    def people(self) -> Labels:
        """Return the people with releases, in the order of their first one."""
        return tuple(self._place)

    def stream(self, person: Label) -> Stream:
        """Return a copy of a person's stream."""
        return self._stream_at(self._place.get(person, 0)).copy()

    @property
    def new_stream(self) -> Stream:
        """Return the stream of a new person without releases."""
        return self._stream_at(0).copy()

    @property
    def levels(self) -> dict[Label, float]:
        """Return the leakage about each person, in nats."""
        return {person: self._stream_at(place).level for person, place in self._place.items()}

    @property
    def level(self) -> float:
        """Return the largest leakage about any person, in nats; 0 without people."""
        return max(
            (self._stream_at(place).level for place in set(self._place.values())), default=0.0
        )

    def _stream_at(self, place: int) -> Stream:
        """Return the stream at a node of the tree of histories."""
        found = self._streams[place]
        assert found is not None  # only for releases that belong to no person
        return found

    def release(self, states: Mapping[Label, Label], seed: Seed = None) -> dict[Label, Label]:
        """Draw and record the next output of each person.

        Args:
            states: by person. People who are not known yet begin.
            seed: for tests.

        Raises:
            MechanismError: a person cannot be in that state after these outputs; nothing is recorded then.
        """
        bits = make_random_bits(seed)
        told: dict[Label, tuple[Label, bool]] = dict.fromkeys(self._place, ("", False))
        groups: dict[int, list[Label]] = {}
        for person in states:
            groups.setdefault(self._place.get(person, 0), []).append(person)
        for place, members in sorted(groups.items()):
            mechanism = self._stream_at(place).mechanism
            for person in members:
                if states[person] not in mechanism.inputs:
                    raise MechanismError(
                        f"{person!r} cannot be in the state {states[person]!r} after these outputs: it is "
                        f"one of {abbreviate(mechanism.inputs)}"
                    )
            drawn = mechanism.sample([states[person] for person in members], seed=bits)
            known = {label: label for label in mechanism.outputs}
            told |= {
                person: (known[output], True) for person, output in zip(members, drawn, strict=True)
            }
        for person, (output, drawn_now) in told.items():
            self._place[person] = self._advance(self._place.get(person, 0), output, drawn_now)
        self._drop_unused()
        return {person: told[person][0] for person in states}

    def _drop_unused(self) -> None:
        """Drop the streams that belong to no person."""
        lived = {0, *self._place.values()}
        self._streams = [one if place in lived else None for place, one in enumerate(self._streams)]
        self._after = {key: place for key, place in self._after.items() if place in lived}

    def _advance(self, place: int, output: Label, drawn: bool) -> int:
        """Advance from a node by an output; return the new node."""
        key = (place, output, drawn)
        if key not in self._after:
            stream = self._stream_at(place).copy()
            if drawn:
                stream.record(output)
            else:
                stream.skip()
            self._add_stream(place, stream)
            self._after[key] = len(self._told)
        return self._after[key]

    def _add_stream(self, place: int, stream: Stream) -> None:
        """Add a stream as a child node."""
        self._before.append(place)
        self._told.append(stream.last_output)
        self._streams.append(stream)

    # ------------------------------------------------------------ files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the streams to a JSON file atomically, with a content digest.

        Raises:
            FileFormatError: the file cannot be written, or its ending is not .json.
        """
        disk.get_file_format(path, (".json",))
        first = self._stream_at(0)
        held = to_plain(StreamsFile(
            StreamDeclaration.from_stream(first), np.array(self._before, dtype=np.int64),
            tuple(output for output, _ in self._told),
            np.array([emits for _, emits in self._told]).reshape(-1, first.chain.size),
            tuple(self._place.items()),
        ))  # fmt: skip
        content = {"format": FORMAT, "digest": _digest_content(held), "streams": held}
        disk.atomic_write(path, disk.encode_json_bytes(content), private=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load streams, and recompute the leakage of all their releases.

        Raises:
            FileFormatError: the file is not there, holds no streams, or was cut short or changed.
        """
        content = parse_json(disk.read_bytes(path), str(path))
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise FileFormatError(f"{path}: holds no streams: its format is not {FORMAT!r}")
        if content.get("digest") != _digest_content(content.get("streams")):
            raise FileFormatError(f"{path}: was changed: its digest is another one")
        held = read_record(StreamsFile, content.get("streams"), f"{path}: streams")
        many = cls(held.first.make_stream())
        for place, output, emits in zip(held.before.tolist(), held.told, held.emitted, strict=True):
            stream = many._stream_at(place).copy()
            stream.record_likelihoods(output, emits)
            many._add_stream(place, stream)
        many._place = dict(held.people)
        many._drop_unused()
        return many

    @classmethod
    @contextmanager
    def open(cls, path: str | os.PathLike[str]) -> Iterator[Self]:
        """Open streams under a lock, and save them when the block ends.

        An exception leaves the file as it was: what was released in the block must not be published then.

        Examples:
            >>> import tempfile
            >>> from pathlib import Path
            >>> from pmlopt import PML, Chain
            >>> path = Path(tempfile.mkdtemp()) / "streams.json"
            >>> chain = Chain([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]])
            >>> Streams(Stream(chain, PML(0.4), "hamming")).save(path)
            >>> with Streams.open(path) as many:
            ...     output = many.release({"ann": 1}, seed=1)["ann"]
            >>> Streams.load(path).stream("ann").history == (output,)
            True
        """
        with open_exclusively(path, cls, lambda many: (len(many._told), dict(many._place))) as many:
            yield many
