"""The session machine in memory: many examples, deep ones."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.domain.machine import SessionMachine

TestSession = SessionMachine.TestCase
TestSession.settings = settings(
    max_examples=150, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
)
