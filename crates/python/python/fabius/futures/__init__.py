"""Functions over futures: what they do not look at cannot conflict (Vale et al., Lazy State Determination, 3.2).

A column of a row is an :class:`Unread`: an expression that has not been computed. Operators make further ones, an
assignment sends the expression, and a condition asks only whether it holds. Whatever needs the value reads it.

A future means the value that was there when it was made. Before a column is written, the futures that are made of it
are read, unless what they mean can still be said: after ``qty = qty - 3``, what was ``qty`` is ``qty + 3``. So a
transaction knows all futures and rows that are still held. What is held when the function has ended is read.

=========== ==========================================================
``unread``  a future, and Python's operators on it
``formula`` what it means in SQL
``pending`` the futures and rows of a transaction
``rows``    rows by their keys, whose columns are futures
``schema``  what the catalog says of a table's columns
=========== ==========================================================
"""

from __future__ import annotations

from .pending import Pending, called, settled
from .rows import Row, Table
from .unread import Unread, value_of

__all__ = ["Pending", "Row", "Table", "Unread", "called", "settled", "value_of"]
