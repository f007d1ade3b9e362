"""Designs with an expected gain or loss: a linear program in the mechanism."""
