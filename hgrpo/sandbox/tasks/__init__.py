"""Tasks that several pieces share. Importing this package imports no torch."""
