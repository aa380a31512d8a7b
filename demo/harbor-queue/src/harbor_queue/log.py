"""What the program says to the person at the terminal."""

import sys


def say(text: str) -> None:
    """Write one line."""
    sys.stdout.write(text + "\n")
