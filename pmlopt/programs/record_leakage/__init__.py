"""The largest information that an answer reveals about one record, for an adversary of bounded knowledge."""
