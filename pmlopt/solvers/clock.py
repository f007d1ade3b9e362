"""The time that is left: one clock for a whole solve, which every loop looks at and every solver is told."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

TIME = "time limit"
"""How what ran out of time says so."""


@dataclass(frozen=True)
class Clock:
    """A reading at which the time is over.

    Attributes:
        end: that reading; infinite without a limit.
        read: the reading now, in seconds.

    Examples:
        >>> clock = Clock.of(60.0)
        >>> clock.late, clock.left() <= 60.0, Clock().left()
        (False, True, None)
    """

    end: float = math.inf
    read: Callable[[], float] = time.perf_counter

    @classmethod
    def of(cls, seconds: float | None, read: Callable[[], float] = time.perf_counter) -> Clock:
        """The clock that begins now and allows some seconds; without a limit for None."""
        return cls(math.inf if seconds is None else read() + seconds, read)

    @property
    def limited(self) -> bool:
        """Whether there is a limit."""
        return not math.isinf(self.end)

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return self.limited and self.read() >= self.end

    def late_by(self, seconds: float) -> bool:
        """Whether the time is over since some seconds; before its end for a negative number."""
        return self.limited and self.read() >= self.end + seconds

    def left(self, least: float = 0.0) -> float | None:
        """The seconds that are left, `least` where it is less; None without a limit."""
        return max(least, self.end - self.read()) if self.limited else None

    def part(self, share: float) -> Clock:
        """The clock of a share of the time that is left."""
        if not self.limited:
            return self
        now = self.read()
        return replace(self, end=now + share * max(0.0, self.end - now))

    def within(self, seconds: float) -> Clock:
        """The clock that allows no more than some seconds from now."""
        return replace(self, end=min(self.end, self.read() + seconds))

    def at_least(self, seconds: float) -> Clock:
        """The clock that allows some seconds from now, however late it is."""
        return replace(self, end=max(self.end, self.read() + seconds)) if self.limited else self


FOREVER = Clock()
"""The clock without a limit."""
