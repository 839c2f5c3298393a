"""Numbers as letters: the columns of a sheet, and the items of lists in pages and Word files."""

LARGEST_ROMAN = 3999
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
    (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip


def in_letters(number: int) -> str:
    """A to z, aa to zz, and so on; from 1."""
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("a") + rest) + letters
    return letters


def in_roman(number: int) -> str:
    """From 1 to `LARGEST_ROMAN`."""
    letters = ""
    for worth, sign in _ROMAN:
        count, number = divmod(number, worth)
        letters += sign * count
    return letters
