"""Sessions that external agents had in their own terminal, and how they go on here. Their files are only read."""
