"""Watch a run: read from the files of its jobs how far each of them is."""
