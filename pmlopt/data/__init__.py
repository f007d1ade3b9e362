"""Priors, secrets and mechanisms, with tables, sampling and symmetry."""
