"""What we know of every operator: YAML files that people review, and the code that reads, edits and syncs them."""
