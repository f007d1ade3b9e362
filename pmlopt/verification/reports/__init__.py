"""A page that says what a saved result promises, for whoever has to decide on it or audit it."""

from pmlopt.verification.reports.pages import write_report as write_report
