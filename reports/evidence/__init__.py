"""What holds on the machines of others: evidence collected on a Mac in one file, checked, kept, set side by side."""
