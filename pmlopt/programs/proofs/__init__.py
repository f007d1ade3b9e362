"""Linear programs over the rationals whose files and duals others can check: the proof of a result in a folder."""
