"""Families with closed forms: one prior-likelihood pair per file, or a folder."""
