"""Rows beyond memory: chunks and files with checkpoints, dask."""
