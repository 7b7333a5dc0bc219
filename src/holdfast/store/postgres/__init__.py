"""The engine on PostgreSQL, for more than one machine. It needs the extra `postgres` (psycopg)."""
