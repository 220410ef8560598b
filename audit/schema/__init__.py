"""Inputs for every overload by its schema: learned once from the CPU, remembered as data, replayed in every audit."""
