"""Evidence from other machines: collected on a Mac in one file, checked, stored and compared."""
