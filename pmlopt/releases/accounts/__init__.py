"""Accounts of releases: ledgers, joint levels, budgets that are left, splits and shuffling."""
