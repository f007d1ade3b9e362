"""Decoders as source code: frequencies of the letters from counts of the outcomes, in other languages."""

from __future__ import annotations

import os

import numpy as np

from pmlopt.core.files.disk import atomic_write
from pmlopt.data.mechanism import Mechanism, pair_with_prior
from pmlopt.data.prior import PriorLike
from pmlopt.data.samplers.languages import find_language, write_numbers_for_r
from pmlopt.data.samplers.source import fill_template
from pmlopt.data.samplers.table import list_texts
from pmlopt.errors import InputError
from pmlopt.measures.estimable import estimable
from pmlopt.releases.estimation.intervals import compute_unbiased_weights

DECODED = ("js", "mjs", "r", "sql")
"""The languages for which there is a decoder."""


def export_decoder(
    mechanism: Mechanism,
    path: str | os.PathLike[str],
    language: str | None = None,
    *,
    prior: PriorLike | None = None,
    name: str = "",
) -> None:
    """Write source code that estimates the frequencies of the letters from counts of released outcomes.

    With counts c of n people and weights V such that `V P' = I`, `V c / n` is an unbiased estimate of the
    frequencies, whatever they are, with the standard error `sqrt((sum_y V[x,y]^2 c_y / n - f_x^2) / n)`. The
    constrained estimate is the nearest law to it. V has the least variance where the letters have the prior.

    Args:
        mechanism: from whose outcomes all frequencies can be estimated.
        path: of the file.
        language: js, mjs, r or sql (PostgreSQL); left out, by the ending .js, .mjs, .R or .sql.
        prior: of the letters; left out, uniform.
        name: what tells its functions from those of another mechanism in one program.

    Raises:
        MechanismError: frequencies cannot be estimated, for the mechanism's rank is below its letters.
        InputError: there is no decoder in this language.
        FileFormatError: the file cannot be written.

    Examples:
        >>> import pathlib, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> path = pathlib.Path(folder.name) / "decoder.js"
        >>> export_decoder(Mechanism([[0.75, 0.25], [0.25, 0.75]], ["no", "yes"], ["no", "yes"]), path)
        >>> "function estimate(counts)" in path.read_text()
        True
        >>> folder.cleanup()
    """
    chosen = find_language(language, path)
    if chosen.name not in DECODED:
        raise InputError(
            f"there is no decoder in {chosen.name}: use one of {', '.join(DECODED)}, or pmlopt estimate"
        )
    size = len(mechanism.inputs)
    estimable(mechanism).check(np.eye(size))
    law = np.full(size, 1 / size)
    if prior is not None:
        law = pair_with_prior(prior, mechanism)[0].pmf
    weights = compute_unbiased_weights(mechanism.matrix, np.eye(size), law @ mechanism.matrix)
    named = mechanism.with_named_outputs()
    values = {
        "INPUTS": chosen.write_texts(list_texts(named.inputs, "inputs")),
        "OUTPUTS": chosen.write_texts(list_texts(named.outputs, "outputs")),
        "NUMBERS": write_numbers_for_r(list_texts(named.outputs, "outputs")),
        "WEIGHTS": chosen.write_rows(weights.round(15).tolist()),
        "N": str(size),
        "M": str(len(named.outputs)),
    }
    atomic_write(path, fill_template("decoder", chosen, name, values).encode())
