"""The transforms: one interpreter per file, and the functions people call."""
