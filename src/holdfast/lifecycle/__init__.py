"""Maintenance of a home: resets, retention, stale commands, the doctor, files of the running gateway."""
