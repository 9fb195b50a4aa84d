"""The two ways in which a measurement can be refused, and how commands end then."""

EXIT_ERROR = 2  # the same as argparse's for bad options
EXIT_INTERRUPTED = 130  # what shells report for a program ended by Ctrl-C


class VelocityError(Exception):
    """Something is wrong and the message says what, where and what to do."""


class NotAvailableError(VelocityError):
    """The stack or the machine lacks what this cell needs: the cell is n/a, not failed."""
