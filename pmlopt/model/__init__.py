"""Model building blocks: requirements, utilities, sets of priors, queries and closed forms."""
