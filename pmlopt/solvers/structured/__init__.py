"""Linear programs in column blocks: a structured interior-point method, and HiGHS."""
