"""The two ways in which a measurement can be refused."""


class VelocityError(Exception):
    """Something is wrong and the message says what, where and what to do."""


class NotAvailableError(VelocityError):
    """The stack or the machine lacks what this cell needs: the cell is n/a, not failed."""
