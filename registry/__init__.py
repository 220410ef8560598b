"""The registry of operators: YAML files that people review, and the code that reads, edits and syncs them."""
