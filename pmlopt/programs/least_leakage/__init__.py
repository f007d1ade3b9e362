"""The least leakage at which a utility can be promised, in expectation or in the worst case."""
