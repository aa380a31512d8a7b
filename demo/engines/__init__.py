"""One writer for each engine: a `Played` run in, the engine's own records out."""
