"""Renders an audit's summary: terminal, Markdown, JSON, CSV, a single-file HTML page and a site."""
