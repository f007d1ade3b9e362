"""Designs for secrets that are numbers: bins, refined until both ends of the best loss are close."""
