"""The tools of agents, each with the class of its effect."""
