"""The foundation: arrays, labels, numbers, files and records."""
