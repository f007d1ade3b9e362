"""The record of a release for public registries of deployments, which compare what was done where.

The keys are those of the registry of deployments of differential privacy [nanayakkara2025registry]. What a
release folder does not state is left empty for its issuer.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

from pmlopt.core.numbers.arrays import join_words
from pmlopt.errors import FileFormatError
from pmlopt.measures import ldp_level
from pmlopt.publishing.checking import check, load_listed_matrix
from pmlopt.publishing.folder import RANDOM_ORDER, ReleaseFile, find_mechanism_file


def describe_deployment(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Describe a release as plain data, by the keys of public registries of deployments.

    Args:
        folder: that `release` made, whose claims are checked first.

    Raises:
        FileFormatError: it is no such folder, or one of its claims is false.

    Examples:
        >>> import tempfile
        >>> from pmlopt import Mechanism
        >>> from pmlopt.publishing import release
        >>> clear = Mechanism([[1.0, 0.0], [0.0, 1.0]], ["no", "yes"], ["no", "yes"])
        >>> with tempfile.TemporaryDirectory() as place:
        ...     out = Path(place) / "out"
        ...     _ = release({"ill": ["yes", "no"] * 50}, {"ill": clear}, out)
        ...     found = describe_deployment(out)["deployment"]
        >>> found["model"]["model_name"], round(found["privacy_loss"]["privacy_parameters"]["epsilon"], 6)
        ('Local', 0.693147)
    """
    verdict = check(folder)
    if verdict.failures:
        failed = join_words([part.name for part in verdict.failures])
        raise FileFormatError(
            f"{folder}: a claim of the release is false ({failed}): see pmlopt check"
        )
    place = Path(folder).resolve()
    told = ReleaseFile.read(place)
    columns = join_words([name for one in told.parts for name in one.columns], 9)
    return {
        "deployment": {
            "product": {
                "name": told.title,
                "data_curators": [told.issuer] if told.issuer else [],
                "intended_use": "",
                "data_product_type": "Microdata",
                "data_product_region": "",
                "description": _describe_product(told),
                "publication_date": told.date,
            },
            "dp_flavor": {
                "name": "Pointwise maximal leakage",
                "data_domain": f"columns {columns}",
                "unprotected_quantities": _describe_unprotected(told),
            },
            "privacy_loss": _describe_loss(place, told),
            "model": {
                "model_name": "Local",
                "release_type": "Single release",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "additional_dp_information": {
                "composition": "the level of all columns together about the tuple of a person's letters",
            },
            "implementation": {
                "mechanisms": _describe_mechanisms(told),
                "library": f"pmlopt {told.version}",
                "verification": "pmlopt check FOLDER",
                "justification": "",
            },
            "resources": {"digests": dict(told.digests)},
        }
    }


def _describe_product(told: ReleaseFile) -> str:
    """Describe the released file in a sentence."""
    order = "in random order" if told.order == RANDOM_ORDER else "in the order of the data"
    return f"{told.rows} rows, one for each person, {order}."


def _describe_unprotected(told: ReleaseFile) -> str:
    """Describe what the level is not about."""
    kept = f"the columns {join_words(told.kept, 9)}, which stay in clear; " if told.kept else ""
    counts = "exact counts" if told.step == 1 else f"counts rounded to multiples of {told.step}"
    return f"{kept}the law of the letters, stated by {counts}; the number of rows"


def _describe_loss(place: Path, told: ReleaseFile) -> dict[str, Any]:
    """Describe the unit and the parameters of the loss, also as local differential privacy."""
    names = [part.mechanism for part in told.parts]
    local = sum(
        ldp_level(load_listed_matrix(find_mechanism_file(place, one), one)) for one in names
    )
    return {
        "privacy_unit": "Person-level",
        "privacy_unit_description": "one row: the tuple of a person's letters in the released columns",
        "privacy_parameters": {"epsilon": told.together},
        "privacy_parameters_description": (
            "nats of pointwise maximal leakage under the stated law of the letters: after any outcome, no "
            "guess about the person is more than e^epsilon times as likely to be right"
        ),
        "local_dp_epsilon": local if math.isfinite(local) else None,
    }


def _describe_mechanisms(told: ReleaseFile) -> str:
    """Describe the mechanisms in a sentence."""
    parts = [f"{join_words(one.columns, 9)} by {one.mechanism}" for one in told.parts]
    return "a row-stochastic matrix of multiples of 2^-53 for each part: " + ", ".join(parts)
