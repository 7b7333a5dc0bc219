"""The conformance suite is no test module, but its assertions shall speak like one's."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.store.conformance")
