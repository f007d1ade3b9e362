"""What everything else stands on: no mathematics of privacy."""
