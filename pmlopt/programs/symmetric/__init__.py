"""Designs on priors that a group leaves as they are: one variable for each orbit of pairs."""
