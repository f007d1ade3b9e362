"""Pages that state what a result promises, for readers who decide on it or audit it."""
