"""Episodic memory for coding agents. Importing this package has no effects and loads nothing heavy."""
