"""Agents of others as workers: what the drivers `acp` and `command` (`runtime/drivers/`) work with.

    configuration.py   the agent of a profile: its command, environment and quirks, from the catalogue or from settings
    prompt.py          what is sent to it; if it lost its memory, the conversation so far
    process.py         its process under keepers: what it says, line by line with offsets, and how it is reached
    steering.py        messages for it while it works
    steps.py           from what it says and does to events of its turn
    problems.py        what its errors mean: nobody is logged in, its quota is used up, or something else
    out_of_memory.py   whether it died for lack of memory
    installed.py       which agents are on this machine, with their versions
    acp/               the Agent Client Protocol: its messages, and what they come to
    command/           agents that are a command for each turn: command lines, and parsers of their output

The catalogue is data, in a layer below the settings, which name its agents: `holdfast/external_agents.py`.
"""
