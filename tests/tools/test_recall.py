"""The tool `recall`: finds the whole conversation, also what the model no longer sees."""

from __future__ import annotations

import json
from pathlib import Path

from holdfast.runtime.tools.context import ToolContext
from holdfast.runtime.tools.recall import MOST, Recall
from tests.lifecycle.rig import LifecycleRig
from tests.runtime.rig import ID, call

OTHER = "fedcba9876543210"


async def test_it_finds_messages_results_and_arguments_of_tools(tmp_path: Path) -> None:
    rig = await LifecycleRig(tmp_path).start()
    await rig.create(f"call {call('write', path='marmot.txt', content='alpine')}\nsay Whistling")
    await rig.create("say walrus", session=OTHER)
    await rig.rest()
    await rig.rest(session=OTHER)
    await rig.reset("r1")
    tool = Recall(rig.sessions).tool
    context = ToolContext(tmp_path, session=ID)

    async def recall(**arguments: object) -> str:
        return (await tool.call(context, json.dumps(arguments))).output

    assert "turn 1: you: Whistling" in await recall(text="whistLING")
    found = await recall(text="alpine")
    assert "turn 1: you: write" in found, "what a tool was asked for, too"
    assert "walrus" not in (await recall(text="walrus")).replace("'walrus'", "")
    assert "marmot.txt" in await recall(turn=1)
    assert (await tool.call(context, json.dumps({"turn": 9}))).outcome == "failed"
    whole = await recall(call="1.1.0")
    assert "marmot.txt" in whole and await recall(call="1.1.0", offset=6) == whole[6:]
    assert (await tool.call(context, json.dumps({"call": "9.9.9"}))).outcome == "failed"
    await rig.close()


async def test_of_many_places_the_last_are_shown_and_the_others_counted(tmp_path: Path) -> None:
    rig = await LifecycleRig(tmp_path).start()
    await rig.create("say marmot 0")
    tool, context = Recall(rig.sessions).tool, ToolContext(tmp_path, session=ID)
    turns = MOST // 2  # each has two places: what was asked, and the answer
    for number in range(1, turns + 1):
        await rig.rest()
        found = (await tool.call(context, json.dumps({"text": "marmot"}))).output.splitlines()
        assert len(found) == 2 * number
        await rig.say(f"say marmot {number}", f"m{number}")
    await rig.rest()
    found = (await tool.call(context, json.dumps({"text": "marmot"}))).output.splitlines()
    assert found[MOST:] == ["[2 earlier places left out]"]
    assert "marmot 1" in found[0], "the first two"
    assert (await tool.call(context, json.dumps({"text": " "}))).outcome == "failed"
    await rig.close()
