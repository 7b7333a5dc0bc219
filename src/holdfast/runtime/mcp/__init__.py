"""MCP client: the tools that other servers offer, as tools of the agent."""
