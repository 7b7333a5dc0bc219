"""Numbered changes of the database. A released change is never edited: old homes need it as it was."""
