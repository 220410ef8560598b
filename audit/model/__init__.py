"""What the parts of the auditor pass to each other: cases, groups of cases, choices of the user, verdicts."""
