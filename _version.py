"""The one place that holds the version of mpsmith."""

__version__ = "0.1.0"
