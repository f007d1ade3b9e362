"""Priors, secrets and mechanisms, and the tables, draws and symmetries that they are made of."""
