"""Colours of maps and labels: one ramp of steady luminance, and a mark for each label."""

from __future__ import annotations

from dataclasses import dataclass

Colour = tuple[float, float, float]

LEVELS = 21
"""The page rounds a share to one of these steps; the value itself is printed beside it."""

_LIGHT_STOPS = ("#f4f1e3", "#cfe3c4", "#84c3b6", "#3f92b3", "#235f9f", "#15306a")
_DARK_STOPS = ("#222a35", "#22496f", "#2a7594", "#4ba69f", "#a4d2a2", "#f1edcb")


@dataclass(frozen=True, slots=True)
class LabelStyle:
    """How one label is shown: never by colour alone, so each has a letter and a name."""

    letter: str
    name: str
    light: str
    dark: str


LABELS: dict[str, LabelStyle] = {
    "composed": LabelStyle("C", "composed", "#1c5d99", "#7db7ea"),
    "composed_with_mirrored_exception": LabelStyle(
        "E", "composed with a mirrored exception", "#2b7f86", "#6cc5c4"
    ),
    "mirrored": LabelStyle("M", "mirrored", "#a85508", "#f0a75e"),
    "mirrored_lookup": LabelStyle("L", "mirrored look-up", "#8a3f1d", "#e58d6b"),
    "other": LabelStyle("O", "another answer", "#7b4a94", "#c79be0"),
    "mixed": LabelStyle("X", "mixed", "#5f6672", "#aab1bd"),
    "data_memorized": LabelStyle("D", "data memorized", "#8b6f1f", "#d9bd6b"),
    "not_trained": LabelStyle("N", "not trained", "#7c7f86", "#8d949f"),
    "diverged": LabelStyle("!", "diverged", "#a3243b", "#f08a9b"),
}
"""In the order in which they are counted out: the best understood first."""


def label_style(label: str) -> LabelStyle:
    """Return how the label is shown; one that is not known keeps its own name and a `?`."""
    return LABELS.get(label, LabelStyle("?", label.replace("_", " "), "#5f6672", "#aab1bd"))


def ramp(share: float, *, dark: bool = False) -> str:
    """Return the colour of a share between 0 and 1 as `#rrggbb`.

    Light pages run from pale to deep, dark pages from deep to pale: more always stands out more.

    >>> ramp(0.0), ramp(1.0)
    ('#f4f1e3', '#15306a')
    """
    stops = [_oklab(_parse(stop)) for stop in (_DARK_STOPS if dark else _LIGHT_STOPS)]
    place = min(max(share, 0.0), 1.0) * (len(stops) - 1)
    left = min(int(place), len(stops) - 2)
    part = place - left
    mixed = [a + (b - a) * part for a, b in zip(stops[left], stops[left + 1], strict=True)]
    return _format(_from_oklab((mixed[0], mixed[1], mixed[2])))


def ink(background: str) -> str:
    """Return the text colour, near black or near white, with the higher contrast on a colour.

    >>> ink("#15306a")
    '#ffffff'
    """
    return max(("#000000", "#ffffff"), key=lambda colour: contrast(colour, background))


def contrast(one: str, other: str) -> float:
    """Return the WCAG contrast ratio of two colours, 1 to 21.

    >>> round(contrast("#000000", "#ffffff"))
    21
    """
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def level(share: float) -> int:
    """Return the step of the ramp on which a share lies, 0 to `LEVELS` - 1.

    >>> level(0.5)
    10
    """
    return round(min(max(share, 0.0), 1.0) * (LEVELS - 1))


def css() -> str:
    """Return the style rules of the ramp's steps and of the labels, for light and dark pages."""
    light, dark = [], []
    for step in range(LEVELS):
        for dark_page, lines in ((False, light), (True, dark)):
            colour = ramp(step / (LEVELS - 1), dark=dark_page)
            lines.append(f".v{step}{{--fill:{colour};--on:{ink(colour)}}}")
    for name, style in LABELS.items():
        for colour, lines in ((style.light, light), (style.dark, dark)):
            lines.append(f".label-{name}{{--label:{colour};--on-label:{ink(colour)}}}")
    return "\n".join([*light, "@media screen and (prefers-color-scheme: dark) {", *dark, "}"])


def _luminance(colour: str) -> float:
    red, green, blue = (_linear(c) for c in _parse(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _parse(colour: str) -> Colour:
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue


def _format(colour: Colour) -> str:
    return "#" + "".join(f"{round(min(max(c, 0.0), 1.0) * 255):02x}" for c in colour)


def _linear(c: float) -> float:
    return c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4


def _gamma_coded(c: float) -> float:
    return 12.92 * c if c <= 0.0031308 else 1.055 * c ** (1 / 2.4) - 0.055


# OKLab (Björn Ottosson, 2020): mixing in it keeps the steps of the ramp even to the eye.
def _oklab(colour: Colour) -> Colour:
    red, green, blue = (_linear(c) for c in colour)
    long = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue) ** (1 / 3)
    medium = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue) ** (1 / 3)
    short = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue) ** (1 / 3)
    return (
        0.2104542553 * long + 0.7936177850 * medium - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * medium + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * medium - 0.8086757660 * short,
    )


def _from_oklab(colour: Colour) -> Colour:
    lightness, a, b = colour
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        _gamma_coded(max(4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short, 0.0)),
        _gamma_coded(max(-1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short, 0.0)),
        _gamma_coded(max(-0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short, 0.0)),
    )
