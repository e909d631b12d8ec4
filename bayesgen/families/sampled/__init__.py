"""Families without a conjugate prior, fitted by MCMC: one a file, or a folder."""
