"""The contract at every boundary and with more examples; schemathesis takes seconds to collect it."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis

from tests.e2e.gateway import GatewayProcess
from tests.gateway.test_contract import check, operations, with_examples


@pytest.mark.proof
@operations(every_boundary=True).parametrize()
@with_examples(50)
def test_contract_at_length(case: schemathesis.Case[Any], gateway: GatewayProcess) -> None:
    check(case, gateway)
