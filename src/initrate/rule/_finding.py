"""Findings of an audit: codes that stay the same, so that users can waive one by one."""

from __future__ import annotations

from dataclasses import dataclass

CODES: dict[str, str] = {
    "IR101": "the rule has no effect on a tensor",
    "IR102": "the number of outputs was taken for the number of inputs",
    "IR103": "several tensors hold one draw",
    "IR104": "values far outside of what a draw gives",
    "IR105": "a bias is larger than the weights it is added to",
    "IR106": "embeddings are of another size than the weights",
    "IR107": "the eps of the first norm swallows part of a small embedding",
    "IR108": "a parameter is in no group of the optimizer",
    "IR109": "a parameter is in two groups of the optimizer",
    "IR110": "the initial loss is far from ln(vocabulary)",
    "IR111": "a tensor that the rule does not cover",
    "IR112": "values that are not finite",
}
"""What each code means."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, with the tensors it is about.

    >>> print(Finding("IR105", ("fc.bias",), "std 0.1 beside 0.01"))
    IR105 fc.bias: std 0.1 beside 0.01
    """

    code: str
    names: tuple[str, ...]
    message: str

    def __str__(self) -> str:
        shown = ", ".join(self.names[:3])
        more = f" and {len(self.names) - 3} more" if len(self.names) > 3 else ""
        return (
            f"{self.code} {shown}{more}: {self.message}" if shown else f"{self.code} {self.message}"
        )

    def to_dict(self) -> dict[str, object]:
        """Return the finding as plain values."""
        return {
            "code": self.code,
            "meaning": CODES[self.code],
            "names": list(self.names),
            "message": self.message,
        }
