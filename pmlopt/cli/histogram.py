"""The command that releases a histogram."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pmlopt.cli.data import DataOptions, MissingCells, Seed, warn_of_seed
from pmlopt.cli.options import TARGET, Arg, Json, Opt, command, main
from pmlopt.cli.printing import echo_json, nats, number, print_table
from pmlopt.core import files
from pmlopt.core.frames import Missing
from pmlopt.errors import InputError


@command(main)
def histogram(
    data: Annotated[Path, Arg("DATA")],
    column: Annotated[str, Opt("The column of DATA that holds the class of each record.")],
    epsilon: Annotated[float, Opt("What it may leak about any one record, in nats.")],
    output: Annotated[Path, Opt("The CSV file to write: class and count.", "-o/--output", TARGET)],
    form: DataOptions,
    min_mass: Annotated[
        float, Opt("Each record is in each class with this probability or more; 0 is differential privacy.")
    ] = 0.0,
    classes: Annotated[
        str | None, Opt("All classes there can be, with commas between, fixed before the data was seen.")
    ] = None,
    public_classes: Annotated[
        bool, Opt("Instead: say that the set of classes that occur is public; a row for each tells it.")
    ] = False,
    no_clip: Annotated[bool, Opt("Leave negative counts.")] = False,
    no_round: Annotated[bool, Opt("Leave fractions.")] = False,
    seed: Seed = None,
    missing: MissingCells = "letter",
    as_json: Json = False,
) -> None:
    """Release the counts of classes, with noise.

    They are how often each class occurs in a column of DATA (CSV, Parquet or Arrow), with Laplace noise. What
    it leaks is about any one record, where the number of records and the set of classes are public.
    """
    from pmlopt.releases.noise import LaplaceHistogram

    if files.is_same_file(output, data):
        raise InputError(f"{output}: is the data itself: write the release to another file")
    if (classes is None) != public_classes:
        raise InputError(
            "a row for each class that occurs would tell which classes occur, and no noise hides it: give "
            "all classes by --classes, or say by --public-classes (not both) that they are public"
        )
    files.check_target(output)
    warn_of_seed(seed)
    counts = _counted(data, column, classes, missing, form)
    noise = LaplaceHistogram.calibrate(epsilon=epsilon, min_mass=min_mass)
    released = noise.release(list(counts.values()), seed, clip=not no_clip, round_to_whole=not no_round)
    shown = [int(count) if not no_round else float(count) for count in released]
    rows = zip(counts, shown, strict=True)
    files.write_whole(output, files.csv_bytes([(column, "count"), *rows]))
    if as_json:
        echo_json({
            "scale": noise.scale, "level": noise.level, "dp_level": noise.dp_level if noise.scale else None,
            "min_mass": noise.min_mass, "public": ["number of records", _public(public_classes)],
            "counts": dict(zip(counts, shown, strict=True)),
        })  # fmt: skip
        return
    print_table(["", ""], [
        ("leaks about a record", nats(noise.level)),
        ("where these are public", f"the number of records, and the {_public(public_classes)}"),
        ("scale of the noise", number(noise.scale) if noise.scale else "0: no noise is needed"),
        ("differential privacy", nats(noise.dp_level)),
        ("classes", f"{len(counts)}, written to {output}"),
    ])  # fmt: skip


def _public(public_classes: bool) -> str:
    """Name the set of classes that the promise takes for public."""
    return "set of classes that occur" if public_classes else "classes given"


def _counted(
    data: Path, column: str, classes: str | None, missing: Missing, form: DataOptions
) -> dict[str, int]:
    """Count how often each class occurs, in the order given or of the text."""
    found = {str(label): count for label, count in form.counts(data, [column], missing).items()}
    if classes is None:
        return dict(sorted(found.items()))
    names = [name.strip() for name in classes.split(",")]
    if len(set(names)) < len(names) or not all(names):
        raise InputError(f"--classes {classes!r}: give each class once, none empty")
    others = sorted(set(found) - set(names))
    if others:
        raise InputError(f"{data}: the column {column!r} holds {others[0]!r}, which is none of --classes")
    return {name: found.get(name, 0) for name in names}
