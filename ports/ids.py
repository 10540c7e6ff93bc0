"""Where fresh ids come from. SPEC section 4 and R16."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Protocol, TypeVar

IdT = TypeVar("IdT", bound=str)


class Ids(Protocol):
    """Makes ids that nobody else has made. Methods may be called from several threads."""

    @abstractmethod
    def fresh(self, kind: Callable[[str], IdT]) -> IdT:
        """Return a new id of the given type, as in `ids.fresh(RunId)`.

        Ids made later by one process sort after earlier ones, as text and whatever their type; across processes they
        sort by time, roughly.

        Args:
            kind: the id's type, called with the text: 1 to 200 characters, none of them a control character.
        """
