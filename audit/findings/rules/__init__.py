"""Why a case may fail without anything new being wrong: named rules, each with a reason for a stranger.

The rules are in registry/rules. The first that matches explains. A defect that is explained stays in the list of wrong
results of shipped kernels.
"""
