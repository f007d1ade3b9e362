"""Linear programs over the rationals with duals that others can check: the proof of a result in a folder."""
