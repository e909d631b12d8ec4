"""Families without a conjugate prior, fitted by MCMC: one per file, or a folder."""
