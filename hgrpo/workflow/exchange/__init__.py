"""Results that travel: one person exports arms and seeds of a study, another imports them."""
