"""Shared privacy options: prior, requirement, and set of priors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from pmlopt.cli.data_options import ColumnOptions, describe_shares
from pmlopt.cli.exits import prints_json
from pmlopt.cli.options import OptionNote, refuse_options
from pmlopt.cli.reading import find_known_name, read_distance, read_gains, read_known
from pmlopt.cli.terminal import print_line
from pmlopt.core.files.letter_files import read_letters
from pmlopt.core.light_dataclass import light_dataclass
from pmlopt.core.numbers.arrays import Label
from pmlopt.core.records.fields import find_tagged_class, find_tagged_classes, get_fields
from pmlopt.core.suggestions import did_you_mean
from pmlopt.errors import InputError

if TYPE_CHECKING:
    from pmlopt.data.prior import Prior
    from pmlopt.data.secret import Secret
    from pmlopt.data.symmetry import SymmetricPrior
    from pmlopt.model.privacy import Requirement
    from pmlopt.model.uncertainty import JointLaws, PriorSet


LEVELS = ("epsilon", "upper", "lower")
"""The fields of requirements that are the level where nothing else is stated."""


@light_dataclass(frozen=True)
class SetsFields:
    """An annotation: an option sets these requirement fields, read for the prior's letters from a file."""

    fields: tuple[str, ...]
    read: Callable[[Any, Prior], Any] = lambda value, _: value


@light_dataclass(frozen=True, kw_only=True)
class PriorSetOptions:
    """The options of the set of priors: a radius, or a sample's confidence."""

    radius: Annotated[
        float | None,
        "PML only: for every prior within this l1 distance of the given one; with --about joint law.",
    ] = None
    confidence_delta: Annotated[
        float | None,
        "PML only: for the true distribution, except with this probability over the sample.",
    ] = None
    region: Annotated[
        Literal["l1-ball", "clopper-pearson", "likelihood"] | None,
        "With --confidence-delta: the set that holds the true distribution; else the l1 ball.",
    ] = None

    def check(self) -> None:
        """Raise an error for conflicting options."""
        refuse_options(
            (self.radius is not None and self.confidence_delta is not None,
             "--radius and --confidence-delta both set the size of the set of priors: give one"),
            (self.region is not None and self.confidence_delta is None,
             "--region is about a sample: give --confidence-delta too"),
        )  # fmt: skip

    def build_prior_set(self, prior: Prior, sample: Prior | dict[Label, int]) -> PriorSet | None:
        """Build the set of priors; None where it is the given one only."""
        from pmlopt.model.uncertainty import REGIONS, L1Ball

        if self.confidence_delta is not None:
            return REGIONS[self.region or "l1-ball"](sample, self.confidence_delta)
        return None if self.radius is None else L1Ball(prior, self.radius)

    def build_joint_laws(self, secret: Secret) -> JointLaws:
        """Build the set of joint laws from a radius or delta; None without these."""
        from pmlopt.model.uncertainty import JointLaws

        if self.confidence_delta is not None:
            return JointLaws.confidence(secret, self.confidence_delta)
        return JointLaws.ball(secret, self.radius or 0.0)


def list_privacy_names() -> list[str]:
    """List the names of requirements that `--privacy` takes: those whose parameters have options."""
    from pmlopt.model.privacy import Requirement

    given = {field for _, gives in _find_field_setters().values() for field in gives.fields}
    needed = {
        name: {one.name for one in get_fields(kind) if one.required or one.several}
        for name, kind in find_tagged_classes(Requirement).items()
    }
    return sorted(name for name, names in needed.items() if names <= given | {"epsilon", "upper"})


@light_dataclass(frozen=True, kw_only=True)
class PrivacyOptions(ColumnOptions, PriorSetOptions):
    """The common options of `design` and `audit`: prior, requirement and set of priors."""

    prior_file: Annotated[
        Path | None,
        "CSV with a header and two columns: letter, and count or probability. Letters of several attributes "
        "take a column each, and are tuples then.",
    ] = None
    counts_file: Annotated[
        Path | None,
        "The same with whole counts only: the sample size counts. If --prior is given too, the utility is "
        "measured under --prior, and these counts are the sample of --confidence-delta, in which letters may "
        "be missing.",
    ] = None
    privacy_name: Annotated[
        str,
        "pml, pml-given-known, ldp, lip, pmc, maximal-leakage, vulnerability, approximate-pml, renyi-pml, "
        "sibson-leakage, maximal-alpha-leakage, metric, pufferfish, g-leakage, guess-leakage, or the name of "
        "a requirement of your own (--import).",
        list_privacy_names,
    ] = "pml"
    about_file: Annotated[
        Path | None,
        SetsFields(("about", "secret")),
        "PML (also of finite order, or given known attributes), vulnerability and Pufferfish: protect a "
        "secret that is correlated with the data, not the data. "
        "CSV with a header: secret and letter of each person; the two and a count or probability; or a "
        "crosstab, a row for each value of the secret. The prior is the law of the letters in it.",
    ] = None
    distance_name: Annotated[
        str | None,
        SetsFields(("distance",), read_distance),
        "Metric privacy only: absolute, hamming, or a CSV matrix of distances (inf for none).",
    ] = None
    gain_file: Annotated[
        Path | None,
        SetsFields(("gain",), read_gains),
        "g-leakage and vulnerability: CSV matrix of gains, a row for each letter and a column for each "
        "guess.",
    ] = None
    delta: Annotated[
        float | None,
        SetsFields(("delta",)),
        "Approximate PML: the delta that is added to e^epsilon P(E). With --traces or --samples of `audit`: "
        "the probability with which the leakage may exceed epsilon.",
    ] = None
    alpha: Annotated[
        float | None,
        SetsFields(("alpha",)),
        "PML of finite order, Sibson's information and maximal alpha-leakage: the order, above 1.",
    ] = None
    guesses: Annotated[
        int | None,
        SetsFields(("guesses",)),
        "Guess leakage only: how many guesses an adversary has.",
    ] = None
    known: Annotated[
        str | None,
        SetsFields(("known",), read_known),
        "pml-given-known only: the attributes that an adversary may know, by positions in the letters, as "
        "0,2; or any.",
    ] = None
    lower: Annotated[
        float | None, SetsFields(("lower",)), "LIP only: the bound on the other side; else epsilon."
    ] = None
    secret_column: Annotated[
        str | None, "With --about DATA and --column: the column of DATA that holds the secret."
    ] = None

    @cached_property
    def secret(self) -> Secret | None:
        """Return the joint law of secret and data, if given."""
        from pmlopt.data.secret import Secret

        if self.about_file is None:
            return None
        if self.secret_column is None or not self.columns:
            return Secret.load(self.about_file)
        named = [self.secret_column, self.columns[0]]
        pairs = self.count_tuples(self.about_file, named, self.missing)
        return Secret.from_counts(pairs, name=self.secret_column)

    def read_prior(self, announce: bool = True) -> Prior:
        """Read the prior, from a joint law, probabilities or counts: with both of these, the
        probabilities.

        Args:
            announce: whether the prior is printed to standard error; with --json it is not.
        """
        self.check()
        if self.secret is not None:
            prior = self.secret.prior
        elif self.prior_file is not None:
            prior = self._prior_source.read_law(self.prior_file, False)
        else:
            assert self.counts_file is not None
            prior = self.read_sample(self.counts_file, False)
        if announce and not prints_json():
            print_line(self.describe_prior(prior), err=True)
        return prior

    @property
    def _prior_source(self) -> ColumnOptions:
        """Return the options by which --prior is read: next to a sample, the column is of the sample."""
        return self if self.counts_file is None else ColumnOptions(normalise=self.normalise)

    def describe_prior(self, prior: Prior) -> str:
        """Return the line on the prior of `read_prior`: its file, how that was read, and its shares."""
        if self.about_file is not None:
            return describe_shares(f"the law of the data in {self.title}", prior)
        file = self.prior_file or self.counts_file
        assert file is not None
        source = self if self.prior_file is None else self._prior_source
        return source.describe_law(file, prior)

    @property
    def input_files(self) -> list[Path]:
        """Return the input files of prior and requirement, which must not be overwritten."""
        distance = None if self.distance_name is None else Path(self.distance_name)
        asked = (self.prior_file, self.counts_file, self.about_file, self.gain_file, distance)
        return [path for path in asked if path is not None]

    def __post_init__(self) -> None:
        name = self.privacy_name
        if name != name.lower() or "_" in name or " " in name:
            object.__setattr__(self, "privacy_name", _find_requirement_name(name))

    @property
    def has_prior_file(self) -> bool:
        """Return whether an option gives the prior."""
        return any((self.about_file, self.prior_file, self.counts_file))

    @property
    def title(self) -> str:
        """Return the name of the prior's file."""
        file = self.about_file or self.prior_file or self.counts_file
        assert file is not None
        return file.name

    @property
    def is_robust(self) -> bool:
        """Return whether the bound is over a set of priors."""
        return self.radius is not None or self.confidence_delta is not None

    def check(self) -> None:
        """Raise an error for conflicting options."""
        about, both = self.about_file is not None, None not in (self.prior_file, self.counts_file)
        refuse_options(
            (not self.has_prior_file,
             "give the prior by --prior FILE or by --counts FILE (CSV: a header, and in each row a letter "
             "and its count), by either with --column NAME (data), or a joint law by --about FILE"),
            (about and (self.prior_file or self.counts_file),
             "--about has the law of the data in it: leave out --prior and --counts"),
            (both and self.confidence_delta is None,
             "--prior and --counts are both given: with --confidence-delta the counts are its sample"),
            (about and len(self.columns) > 1,
             "--about has one column of the data: give --column once"),
            ((self.secret_column is None) != (not self.columns or not about),
             "of data, --about takes --column and --secret-column, the column of the secret: give both"),
        )  # fmt: skip
        self.check_belonging()
        super().check()
        if about and self.region not in (None, "l1-ball"):
            raise InputError(
                f"--region {self.region} is for priors without a secret: with --about it is l1-ball"
            )

    @cached_property
    def requirement_class(self) -> type[Requirement]:
        """Return the requirement class of the options, also from `--import` modules."""
        from pmlopt.model.privacy import Requirement

        found = find_tagged_class(Requirement, self.privacy_name)
        if found is None:
            known = sorted(find_tagged_classes(Requirement))
            near = did_you_mean(self.privacy_name, known, f"known are {', '.join(known)}")
            raise InputError(f"--privacy {self.privacy_name} is not known: {near}")
        return found

    def check_belonging(self) -> None:
        """Raise an error for options that the requirement lacks or requires."""
        fields = {one.name: one.required for one in get_fields(self.requirement_class)}
        if self.is_robust and "over" not in fields:
            raise InputError(
                f"--radius and --confidence-delta belong to --privacy pml, not to {self.privacy_name}"
            )
        for name, (option, gives) in _find_field_setters().items():
            given = getattr(self, name)
            named = set(gives.fields)
            is_level = bool(named & set(LEVELS))
            if given is None and not is_level and any(fields.get(field) for field in named):
                raise InputError(
                    f"--privacy {self.privacy_name} and {option} belong together: give both"
                )
            if given is not None and not named & set(fields):
                belongs = _list_requirements_with(named)
                text = (
                    f"--privacy {belongs[0]} and {option} belong together: give both"
                    if len(belongs) == 1 and not is_level else
                    f"{option} belongs to --privacy {' or '.join(belongs)}, not to {self.privacy_name}"
                )  # fmt: skip
                if name == "delta" and "over" in fields:
                    text += (
                        "; the bound for the true distribution of a sample is --confidence-delta"
                    )
                raise InputError(text)
        optional = {field for _, gives in _find_field_setters().values() for field in gives.fields}
        beyond = (
            {name for name, required in fields.items() if required} - optional - {*LEVELS, "over"}
        )
        if beyond:
            raise InputError(
                f"--privacy {self.privacy_name} has {', '.join(sorted(beyond))}, for which there is no "
                "option: state it in a problem file"
            )

    def read_fields(self, prior: Prior, secret: Secret | None = None) -> dict[str, Any]:
        """Read the requirement's fields, other than the level, for the prior's letters.

        Args:
            prior: for which it is.
            secret: in place of that of the options, such as with rounded counts.
        """
        secret = self.secret if secret is None else secret
        if secret is not None and secret.labels != prior.labels:
            secret = secret.reordered(prior.labels)
        found: dict[str, Any] = {"over": None}
        if self.is_robust and secret is not None:  # of joint laws
            found["over"] = self.build_joint_laws(secret)
        elif self.is_robust:
            sampled = self.prior_file is not None and self.counts_file is not None
            found["over"] = self.build_prior_set(
                prior, self._align_sample(prior) if sampled else prior
            )
        for name, (_, gives) in _find_field_setters().items():
            value = secret if name == "about_file" else getattr(self, name)
            read = None if value is None else gives.read(value, prior)
            found |= dict.fromkeys(gives.fields, read)
        return found

    def build_requirement(
        self, epsilon: float, prior: Prior, given: Mapping[str, Any] | None = None
    ) -> Requirement:
        """Build the requirement at a level in nats; `given` comes from `read_fields`."""
        self.check_belonging()
        beside = self.read_fields(prior) if given is None else given
        values: dict[str, Any] = dict.fromkeys(LEVELS, epsilon)
        values |= {name: value for name, value in beside.items() if value is not None}
        make: Any = self.requirement_class
        fields = {one.name: values[one.name] for one in get_fields(make) if one.name in values}
        return make(**fields)  # type: ignore[no-any-return]

    def build_orbit_requirement(self, epsilon: float, prior: SymmetricPrior) -> Requirement:
        """Build the requirement of the options for a symmetric prior."""
        if self.confidence_delta is not None or self.secret is not None:
            raise InputError(
                "--confidence-delta and --about need a list of letters: leave out --records and --circle"
            )
        return self.build_requirement(epsilon, prior)

    def _align_sample(self, prior: Prior) -> dict[Label, int]:
        """Return each letter's sample count, in the prior's order."""
        assert self.counts_file is not None
        if self.columns:
            seen = self.count_values(self.counts_file, self.columns, self.missing)
        else:
            labels, numbers = read_letters(self.counts_file)
            counts = [int(number) for number in numbers if isinstance(number, int)]
            if len(counts) < len(numbers) or len(set(labels)) < len(labels):
                raise InputError(
                    f"{self.counts_file}: give a whole number for each letter, and each letter once"
                )
            seen = dict(zip(labels, counts, strict=True))
        if set(seen) == set(prior.labels):
            return {letter: seen[letter] for letter in prior.labels}
        return seen


def _list_requirements_with(fields: set[str]) -> list[str]:
    """List the names of the requirements that have one of some fields."""
    from pmlopt.model.privacy import Requirement

    known = find_tagged_classes(Requirement).items()
    return [name for name, kind in known if fields & {one.name for one in get_fields(kind)}]


@cache
def _find_field_setters() -> dict[str, tuple[str, SetsFields]]:
    """Find the options that set requirement fields, with those fields."""
    return {
        name: (OptionNote.read(name, hint).flags[0], hint.__metadata__[0])
        for name, hint in get_type_hints(PrivacyOptions, include_extras=True).items()
        if isinstance(hint.__metadata__[0], SetsFields)
    }


def _find_requirement_name(name: str) -> str:
    """Return the name of a requirement given in another case or by its class."""
    from pmlopt.model.privacy import Requirement

    if find_tagged_class(Requirement, name) is not None:
        return name
    return find_known_name(name, find_tagged_classes(Requirement))
