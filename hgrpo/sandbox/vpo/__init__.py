"""Sets of answers with two rewards each: values of sets, and credit of slots."""
