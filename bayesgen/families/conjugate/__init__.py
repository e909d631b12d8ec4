"""Families with closed forms: one prior-likelihood pair a file, or a folder."""
