"""Audits operators: the surface of torch's operators, cases that exercise them, verdicts, and the store of results."""
