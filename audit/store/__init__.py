"""The results store: one SQLite file with a row per case and everything needed to run that case again."""
