"""The trade-off between leakage per record and expected distortion."""
