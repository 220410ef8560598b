"""Which operators the networks that people run call on mps, and from which release on they run without a fallback."""
