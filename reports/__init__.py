"""What do I show? Renderers of an audit's summary: terminal, Markdown, JSON, CSV and a single-file HTML page."""
