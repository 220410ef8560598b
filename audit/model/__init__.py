"""Data that all parts of the auditor share: cases, groups, settings, verdicts."""
