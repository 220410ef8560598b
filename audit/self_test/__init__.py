"""Tests the auditor: injects faults into the simulated device and counts how many an audit finds."""
