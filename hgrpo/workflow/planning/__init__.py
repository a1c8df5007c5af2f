"""Plans what a run would do and cost, and later checks how accurate the plan was."""
