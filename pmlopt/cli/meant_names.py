"""Names of options and commands that people type and that there are not, with what to type instead."""

OPTIONS_MEANT = {
    "--again": ("--allow-duplicate",),
    "--also": ("--and-mechanism",),
    "--beside": ("--compare",),
    "--by": ("--secret-column", "--group-by"),
    "--delta": ("--confidence-delta",),
    "--least": ("--min-probability",),
    "--least-fit": ("--min-p-value",),
    "--person": ("--person-column",),
    "--reach": ("--target",),
    "--slack": ("--delta",),
    "--time": ("--time-column",),
    "--weight": ("--weight-column",),
    "--who": ("--person-column",),
}
"""What to write for names of options that there are not: the first that the command has."""

COMMANDS_MEANT = {
    "pram": "pmlopt design --constraint invariant, and then pmlopt apply (post-randomization)",
    "post-randomization": "pmlopt design --constraint invariant, and then pmlopt apply",
    "randomize": "pmlopt apply MECHANISM DATA",
    "sample": "pmlopt apply MECHANISM DATA",
    "perturb": "pmlopt apply MECHANISM DATA",
    "decode": "pmlopt estimate MECHANISM",
    "unbias": "pmlopt estimate MECHANISM",
    "optimize": "pmlopt design, or pmlopt solve PROBLEM",
    "optimise": "pmlopt design, or pmlopt solve PROBLEM",
    "leakage": "pmlopt audit MECHANISM",
    "level": "pmlopt audit MECHANISM",
    "budget": "pmlopt ledger",
    "ptable": "pmlopt export MECHANISM --to ptable",
    "convert": "pmlopt design ... -o FILE, whose ending names the format",
    "list": "pmlopt problems",
    "plan": "pmlopt people-needed, or pmlopt release --plan FILE",
}
"""What to type for names of commands that there are not."""
