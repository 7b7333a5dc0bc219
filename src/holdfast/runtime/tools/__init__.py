"""What an agent can do, each tool with the class of its effect."""
