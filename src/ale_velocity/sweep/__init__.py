"""Measure a history within a time limit: what asv runs next, and when it stops."""
