"""The DataTree: the only builder and reader."""
