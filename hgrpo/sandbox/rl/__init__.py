"""Which samples deserve gradient: 31 rules on bandits and short sequences, with a full log."""
