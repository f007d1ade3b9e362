"""The command that writes a mechanism on counts as a table of noise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pmlopt.cli.options import TARGET, Arg, Opt, check_apart, command, main
from pmlopt.cli.printing import nats, say
from pmlopt.cli.verifying import prior_in
from pmlopt.core import files


@command(main, "noise-table")
def noise_table(
    mechanism_file: Annotated[Path, Arg("MECHANISM")],
    output: Annotated[Path, Opt("The CSV file to write.", "-o/--output", TARGET)],
    keys: Annotated[
        int | None, Opt("Round to so many whole cell keys; left out, keys are numbers from 0 to 1.")
    ] = None,
) -> None:
    """Write a mechanism on counts as a table of noise.

    That is the form of the cell key method: i, j, p, v and an interval of keys, as R's ptable has it; with
    --keys pcv, ckey and pvalue. What is rounded is another mechanism, whose level is printed.
    """
    from pmlopt.data.mechanism import Mechanism
    from pmlopt.measures import leakage_level
    from pmlopt.releases import noise_tables as tables

    check_apart([output], [mechanism_file])
    files.check_target(output)
    mechanism, prior = Mechanism.load(mechanism_file), prior_in(mechanism_file)
    used = mechanism if keys is None else tables.rounded_to_keys(mechanism, keys)
    rows: list[tuple[object, ...]] = [tables.PTABLE, *tables.ptable_rows(used)]
    if keys is not None:
        rows = [tables.KEYS, *tables.key_rows(used, keys)]
    files.write_whole(output, files.csv_bytes(rows))
    told = "" if prior is None else f"; PML {nats(leakage_level(prior, used))}"
    if prior is not None and keys is not None:
        told += f", {nats(leakage_level(prior, mechanism))} before it was rounded"
    say(f"{output}: {len(rows) - 1} rows{told}")
