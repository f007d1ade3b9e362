"""The algorithms of [wu2026entropy], local searches without a bound, which `solve` runs by name only."""
