"""Report pages on a result, for readers who decide on it or audit it."""
