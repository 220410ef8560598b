"""The operators that well-known networks call on mps, and the first release that runs them without a fallback."""
