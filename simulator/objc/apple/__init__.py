"""Headers of Apple's frameworks for other systems: generated from open packages, or written by hand.

`mpsmith check` compiles against them for macOS, and `simulator.objc` for this machine.
"""
