"""Jobs, hours, money and disk of a run, before it starts."""
