"""What an answer tells of one record an adversary whose knowledge is bounded by an entropy."""
