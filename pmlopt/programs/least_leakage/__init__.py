"""The smallest leakage level at which a utility can be guaranteed, in expectation or in the worst case."""
