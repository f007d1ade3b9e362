"""Arrays, labels, numbers, files and records: what everything else is written with."""
