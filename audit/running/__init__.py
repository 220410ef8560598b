"""Runs the cases of an audit in worker processes, with a time limit each, and stops and resumes cleanly."""
