"""Proves on any machine that Objective-C++ and Metal source builds for a Mac: compiled, linked and read back."""
