"""Plans: what a run would do and cost, and later how accurate that was."""
