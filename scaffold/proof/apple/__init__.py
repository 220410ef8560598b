"""Declarations of Apple's frameworks for type checking on other systems: generated from open packages, or by hand."""
