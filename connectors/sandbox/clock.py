"""A vendor's clock, which a test may hold still or push on."""

from datetime import UTC, datetime, timedelta

TICK = timedelta(milliseconds=1)


class Clock:
    """Real time plus what it was advanced by; held still when `at` is given. No two stamps are the same."""

    def __init__(self, at: datetime | None = None) -> None:
        self._at = at
        self.reset()

    def reset(self) -> None:
        """As if it had never been advanced."""
        self._ahead = timedelta()
        self._last = datetime.min.replace(tzinfo=UTC)

    def now(self) -> datetime:
        return (self._at or datetime.now(UTC)) + self._ahead

    def stamp(self) -> datetime:
        """For a change: later than every stamp before it, to the millisecond, as vendors write it."""
        now = self.now()
        now = now.replace(microsecond=now.microsecond // 1000 * 1000)
        self._last = max(now, self._last + TICK)
        return self._last

    def advance(self, seconds: float) -> None:
        self._ahead += timedelta(seconds=seconds)
