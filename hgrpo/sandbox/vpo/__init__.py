"""Sets of answers with two rewards each: which set is worth most, and which slot earned it."""
