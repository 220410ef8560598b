"""Finding calls that the CPU accepts for overloads without known inputs, and proving that they repeat."""
