"""Numbered changes of the database. What stands here once is never changed: old homes need it as it was."""
