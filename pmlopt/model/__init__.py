"""What can be asked: requirements, utilities, sets of priors, queries, and what is known by formula."""
