"""The migrations of PostgreSQL; none is changed after it was released."""
