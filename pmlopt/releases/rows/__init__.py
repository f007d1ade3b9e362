"""Rows through mechanisms: batches, tables, folders, and drafts that are resumed."""
