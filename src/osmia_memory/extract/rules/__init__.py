"""The rules, by what they watch. `heuristics.RULES` lists them all."""
