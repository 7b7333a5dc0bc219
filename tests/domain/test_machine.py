"""The session machine in memory: deep examples."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.domain.machine import SessionMachine

TestSession = SessionMachine.TestCase
TestSession.settings = settings(
    max_examples=40,  # more: tests/test_machines_at_length.py
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
