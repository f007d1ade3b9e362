"""What can be required: requirements, utilities, sets of priors, queries, and what is known by formula."""
