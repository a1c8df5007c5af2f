"""Plan what a run will do and cost, and check afterwards how accurate the plan was."""
