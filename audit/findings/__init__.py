"""The findings of a run: the verdict on each overload, from the cases in the store."""
