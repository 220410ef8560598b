"""Whether an operator works on mps, in one release of torch: one answer for every command, page and message."""
