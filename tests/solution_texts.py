"""One solution of a program of three columns, as each solver writes it."""

COLUMNS = {"x[a,0]": 0.25, "x[b,0]": 1e-3, "x[c,1]": 0.0}
FORMS = {
    "gurobi": "# Solution for model program\n# Objective value = 3.5\nx[a,0] 0.25\nx[b,0] 1e-03\nx[c,1] 0\n",
    "copt": "# Objective value 3.5\nx[a,0]     0.25\nx[b,0]     0.001\nx[c,1]     0\n",
    "cuopt": "# Status: Optimal\n# Objective value: 3.5\nx[a,0] 0.25\nx[b,0] 0.001\nx[c,1] 0\n",
    "cplex": '<?xml version = "1.0"?>\n<CPLEXSolution version="1.2">\n <header\n   objectiveValue="3.5"/>\n'
    ' <linearConstraints>\n  <constraint name="r" index="0" slack="0" dual="0.5"/>\n </linearConstraints>\n'
    ' <variables>\n  <variable name="x[a,0]" index="0" status="BS" value="0.25" reducedCost="0"/>\n'
    '  <variable name="x[b,0]" index="1" status="BS" value="0.001" reducedCost="0"/>\n'
    '  <variable name="x[c,1]" index="2" status="LL" value="0" reducedCost="3"/>\n </variables>\n',
    "scip": "solution status: optimal solution found\nobjective value:                3.5\n"
    "x[a,0]              0.25 \t(obj:0)\nx[b,0]              0.001 \t(obj:0.3)\nx[c,1]     0 \t(obj:1)\n",
    "cbc": "Optimal - objective value 3.50000000\n      0 x[a,0]      0.25         0\n"
    "      1 x[b,0]      0.001         0\n      2 x[c,1]      0       3\n",
    "highs": "Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 3.5\n# Columns 3\n"
    "x[a,0] 0.25\nx[b,0] 0.001\nx[c,1] 0\n# Rows 1\nx[a,0] 7\n\n# Dual solution values\n",
    "lp_solve": "\nValue of objective function: 3.50000000\n\nActual values of the variables:\n"
    "x[a,0]       0.25\nx[b,0]      0.001\nx[c,1]          0\n\nActual values of the constraints:\nr   1\n",
}  # fmt: skip

GLPSOL = (
    "c Problem:    program\nc Status:     OPTIMAL\ns bas 1 3 f f 3.5\ni 1 u 7 0.5\nj 1 b 0.25 0\n"
    "j 2 b 0.001 0\nj 3 l 0 3\ne o f\n"
)
"""That of glpsol, which has no names."""

XPRESS = "NAME          program\n  C x[a,0]      0.25\n  C x[b,0]      0.001\n  C x[c,1]      0\nENDATA\n"
"""That of Xpress, which states no objective."""
