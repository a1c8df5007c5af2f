"""What a run would do and cost, and afterwards how true that was."""
