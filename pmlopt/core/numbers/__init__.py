"""Arrays and numbers: validation, exact and rounded arithmetic, bounds, searches and integrals."""
