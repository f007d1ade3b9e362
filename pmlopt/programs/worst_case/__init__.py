"""The highest rank that no output falls below, within a PML level."""
