"""The highest utility rank that a mechanism within a PML level can guarantee."""
