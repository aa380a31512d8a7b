"""A small job queue over SQLite."""
