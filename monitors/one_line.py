"""What somebody else wrote, in one line that can be printed."""

from __future__ import annotations


def one_line(said: object, most: int = 300) -> str:
    r"""A text, or the message of an error, as one printable line of at most ``most`` characters.

    An error without a message is called by its kind.

    >>> one_line("a\n  b\x00c"), one_line(ValueError("no\rnumber")), one_line(KeyError())
    ('a b c', 'no number', 'KeyError')
    """
    text = str(said)[: 2 * most]
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())[:most]
    return line or (type(said).__name__ if isinstance(said, Exception) else "")
