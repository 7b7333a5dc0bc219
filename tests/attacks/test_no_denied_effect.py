"""No sequence of tool calls has an effect that a rule denies, whoever is made to carry it out.

Random trees of agents: each runs commands, writes files, and creates sub-agents and cards of random profiles, which do
the same. Every effect leaves a file of its own name. A file may be there only if every profile from the first agent to
the one that acted allows the tool, and every creation on the way was allowed too; and then it must be there.
"""

from __future__ import annotations

import itertools
import json
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from holdfast.domain.commands import CreateSession
from holdfast.store.reads import CardFilter
from tests.board.rig import BoardRig
from tests.memory import MEMORY

DEEPEST = 3
OPEN_CARDS = (CardFilter(status="ready"), CardFilter(status="running"))
TOOLS = ("terminal", "write", "delegate", "kanban_create")


@dataclass(frozen=True)
class Agent:
    """One agent of a tree: its profile, and the profiles of those that it descends from."""

    profile: str
    ancestors: tuple[str, ...] = ()
    on_card: bool = False

    def child(self, profile: str, *, on_card: bool) -> Agent:
        return Agent(profile, (*self.ancestors, self.profile), on_card)


@dataclass
class RandomRules:
    """The rules of every profile, and what is expected of every effect."""

    chance: random.Random
    rules: dict[str, dict[str, str]] = field(default_factory=dict)
    expected: dict[str, bool] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def config(self) -> str:
        text = "[agents]\nmax_open = 1000\n[board]\nmax_running = 50\n"
        for number in range(6):
            name = f"p{number}"
            self.rules[name] = {tool: self.chance.choice(["allow", "allow", "deny"]) for tool in TOOLS}
            lines = [f'"{tool}" = "{rule}"' for tool, rule in self.rules[name].items()]
            lines.append(f'"kanban_create:*" = "{self.rules[name]["kanban_create"]}"')
            text += f'[profiles.{name}]\nmodel = "demo"\n[profiles.{name}.tools]\n' + "\n".join(lines) + "\n"
        return text

    def allows(self, agent: Agent, tool: str) -> bool:
        return all(self.rules[profile][tool] == "allow" for profile in (*agent.ancestors, agent.profile))

    def script(self, agent: Agent, *, reached: bool) -> str:
        """What an agent is told to do; `reached` says whether it may come to exist at all."""
        lines = [self.effect(agent, reached=reached) for _ in range(self.chance.randint(1, 3))]
        if len(agent.ancestors) <= DEEPEST:
            lines += [self.creation(agent, reached=reached) for _ in range(self.chance.randint(0, 2))]
        self.chance.shuffle(lines)
        return "\n".join([*lines, "complete that is all"] if agent.on_card else lines)

    def effect(self, agent: Agent, *, reached: bool) -> str:
        tool, name = self.chance.choice(["terminal", "write"]), f"canary-{next(self.numbers)}"
        self.expected[name] = reached and self.allows(agent, tool)
        if tool == "write":
            return call("write", path=name, content="x")
        return call("terminal", command=self.chance.choice(["touch {}", "sh -c 'touch {}'"]).format(name))

    def creation(self, agent: Agent, *, reached: bool) -> str:
        tool = self.chance.choice(["delegate", "kanban_create"] if agent.on_card else ["delegate"])
        child = agent.child(self.chance.choice([*self.rules, "demo"]), on_card=tool == "kanban_create")
        may = reached and child.profile != "demo" and len(agent.ancestors) < DEEPEST and self.allows(agent, tool)
        known = child if child.profile != "demo" else Agent(agent.profile, child.ancestors, child.on_card)
        text = self.script(known, reached=may)
        if tool == "delegate":
            return call("delegate", prompt=text, profile=child.profile, notify=False)
        return call("kanban_create", title="more", body=text, profile=child.profile)


def call(tool: str, **arguments: object) -> str:
    return f"call {tool} {json.dumps(arguments)}"


async def quiet(rig: BoardRig) -> None:
    """Until nobody works and no card is about to be started."""
    with rig.store.subscribe(None) as changes:
        while True:
            changes.drain()
            seq = (await rig.store.counts()).seq
            at_work = await rig.store.unfinished_sessions()
            tasks = [row for row in await rig.store.running_tasks() if row.kind != "process"]
            waiting = {row.turn_state for row in at_work} - {"running"}
            assert "waiting" not in waiting, "nobody is there to be asked"
            cards = [await rig.store.cards.cards(one, offset=0, limit=1) for one in OPEN_CARDS]
            if not at_work and not tasks and not any(cards) and seq == (await rig.store.counts()).seq:
                return
            await changes.wait()


async def grow(seed: int, trees: int) -> int:
    """Let trees of agents work; how many effects were allowed and seen."""
    world = RandomRules(random.Random(seed))
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        root = Path(directory)
        rig = await BoardRig(root / "home", config=world.config()).start()
        try:
            for number in range(trees):
                first = Agent(world.chance.choice([*world.rules]), on_card=bool(number % 2))
                script = world.script(first, reached=True)
                if first.on_card:
                    await rig.create(f"c0ffee{number:02}", script, profile=first.profile)
                    continue
                cwd = root / f"work{number}"
                cwd.mkdir()
                await rig.sessions.create(
                    CreateSession(text=script),
                    session=f"{number:016x}",
                    profile=first.profile,
                    cwd=str(cwd),
                    caller=rig.caller(),
                )
            await quiet(rig)
        finally:
            await rig.close()
        seen = {path.name for path in root.rglob("canary-*")}
    forbidden = {name for name in seen if not world.expected[name]}
    assert not forbidden, f"seed {seed}: these effects were denied and happened: {forbidden}"
    missing = {name for name, expected in world.expected.items() if expected} - seen
    assert not missing, f"seed {seed}: these effects were allowed and did not happen: {missing}"
    return len(seen)


async def test_no_sequence_of_calls_has_an_effect_that_the_rules_deny() -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    assert await grow(seed, trees=10) > 0


@pytest.mark.proof
async def test_many_trees_of_agents_have_no_effect_that_the_rules_deny() -> None:
    base = random.randrange(1 << 32)
    seen = sum([await grow(base + number, trees=12) for number in range(50)])
    print(f"seeds {base} and following: 600 trees, {seen} allowed effects, 0 denied ones")
