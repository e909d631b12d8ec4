"""The version, where every module may read it without the package's public names."""

__version__ = "0.2.0"
