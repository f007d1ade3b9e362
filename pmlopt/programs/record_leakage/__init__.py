"""The information that an answer reveals about one record to an adversary of bounded knowledge."""
