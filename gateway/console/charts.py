"""Charts drawn on the server: small SVG pictures that need no script and read well aloud."""

from collections.abc import Sequence
from datetime import date, timedelta

from markupsafe import Markup, escape

WIDTH, HEIGHT, FOOT = 640, 140, 18
MARGIN = 16  # for half of the first and the last label
_MOST_LABELS = 6


def by_day(counts: dict[date, float], since: date, until: date) -> list[tuple[date, float]]:
    """Every day of the period, those without a count as 0."""
    days = (until - since).days + 1
    return [(day := since + timedelta(days=n), counts.get(day, 0.0)) for n in range(max(days, 1))]


def bars(values: Sequence[tuple[date, float]], title: str, unit: str = "") -> Markup:
    """One bar per day. The numbers are in the picture's own titles, so that nothing is told by height alone."""
    most = max((value for _, value in values), default=0.0) or 1.0
    step = WIDTH / max(len(values), 1)
    drawn: list[str] = []
    every = max(1, -(-len(values) // _MOST_LABELS))
    for index, (day, value) in enumerate(values):
        height = (HEIGHT - FOOT) * value / most
        x, y = index * step, HEIGHT - FOOT - height
        words = escape(f"{day.isoformat()}: {value:g} {unit}".strip())
        drawn.append(
            f'<rect x="{x + step * 0.1:.1f}" y="{y:.1f}" width="{step * 0.8:.1f}" height="{max(height, 0.5):.1f}" rx="1.5">'
            f"<title>{words}</title></rect>"
        )
        if index % every == 0:
            drawn.append(f'<text x="{x + step / 2:.1f}" y="{HEIGHT - 4}">{day.strftime("%d.%m.")}</text>')
    total = sum(value for _, value in values)
    label = escape(f"{title}: {total:g} {unit}".strip())
    return Markup(  # noqa: S704 - every value above was escaped or formatted as a number
        f'<svg class="chart" viewBox="{-MARGIN} 0 {WIDTH + 2 * MARGIN} {HEIGHT}" role="img" aria-label="{label}" preserveAspectRatio="none">'
        f"{''.join(drawn)}</svg>"
    )
