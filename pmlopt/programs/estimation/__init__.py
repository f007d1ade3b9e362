"""The mechanism from whose output frequencies are estimated best."""
