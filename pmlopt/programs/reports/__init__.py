"""Pages that say what a result promises, for whoever has to decide on it or audit it."""
