"""The least leakage on priors that a group leaves as they are."""
