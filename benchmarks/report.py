"""What was measured: one line each, and the table at the end. A missed goal is told, never raised."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal


@dataclass(frozen=True, slots=True)
class Goal:
    """At least, or at most; `None` as a goal means that the figure is only told."""

    sign: Literal["≥", "≤"]
    value: float
    unit: str = "x"

    def holds(self, measured: float) -> bool:
        """Whether it was reached."""
        return measured >= self.value if self.sign == "≥" else measured <= self.value

    def __str__(self) -> str:
        return f"{self.sign} {self.value:g}{self.unit}"


@dataclass(frozen=True, slots=True)
class Line:
    """One figure of ours, the limit measured beside it, and what the two make."""

    area: str
    name: str
    ours: str
    limit: str
    measured: float
    unit: str = "x"
    goal: Goal | None = None
    spread: str = ""
    """The quartiles of the pairs, which say how noisy the run was."""

    @property
    def verdict(self) -> str:
        """ok, missed, or nothing where there is no goal."""
        if self.goal is None:
            return ""
        return "ok" if self.goal.holds(self.measured) else "missed"

    def cells(self) -> tuple[str, ...]:
        """As a row of the table."""
        measured = f"{self.measured:.2f}{self.unit}" if self.measured < 100 else f"{self.measured:,.0f}{self.unit}"
        goal = str(self.goal) if self.goal is not None else ""
        return (f"{self.area}: {self.name}", self.ours, self.limit, measured, self.spread, goal, self.verdict)


HEADER = ("what", "ours", "the limit beside it", "ratio", "quartiles", "goal", "")


@dataclass(slots=True)
class Report:
    """All lines of a run; each is printed when it is known."""

    about: dict[str, str] = field(default_factory=dict)
    lines: list[Line] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, line: Line) -> None:
        """Print it now and keep it for the table."""
        self.lines.append(line)
        print(" · ".join(cell for cell in line.cells() if cell), flush=True)

    def note(self, text: str) -> None:
        """Something that could not be measured, and why."""
        self.notes.append(text)
        print(f"note: {text}", flush=True)

    def table(self) -> str:
        """The table in Markdown, and which goals hold."""
        rows = [HEADER, tuple("---" for _ in HEADER), *(line.cells() for line in self.lines)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
        out = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) + " |" for row in rows]
        verdicts = [line.verdict for line in self.lines]
        missed = [f"{line.area}: {line.name}" for line in self.lines if line.verdict == "missed"]
        out += ["", f"{verdicts.count('ok')} goals hold, {len(missed)} missed" + (": " if missed else ".")]
        out[-1] += "; ".join(missed)
        out += [f"note: {note}" for note in self.notes]
        out += [f"{name}: {value}" for name, value in self.about.items()]
        return "\n".join(out)

    def save(self, path: Path) -> None:
        """As JSON, for whoever compares runs."""
        lines = [asdict(line) | {"verdict": line.verdict} for line in self.lines]
        path.write_text(json.dumps({"about": self.about, "lines": lines, "notes": self.notes}, indent=2) + "\n")
