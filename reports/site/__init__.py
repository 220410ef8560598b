"""The static site: all that the product knows, in a folder of pages that open from disk."""
