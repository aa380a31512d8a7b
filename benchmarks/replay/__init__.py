"""Would the block have helped? Recorded runs in time order; before each, memory holds only earlier runs of its repository."""
