"""Declarations for asv: what is measured, over which parameters, in which unit."""
