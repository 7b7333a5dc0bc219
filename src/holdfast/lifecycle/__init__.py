"""What keeps a home healthy over the years."""
