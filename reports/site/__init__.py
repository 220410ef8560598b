"""The static site: a folder of pages that open from disk."""
