"""Differentiate array programs."""
