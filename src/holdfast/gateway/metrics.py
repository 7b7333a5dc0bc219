"""Figures for Prometheus, read when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from holdfast.gateway.state import Gateway
from holdfast.store.rows import StoreCounts


class _Figures(Collector):
    def __init__(self, gateway: Gateway, counts: StoreCounts) -> None:
        self._gateway = gateway
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        gateway, counts = self._gateway, self._counts
        for name in ("sessions", "messages", "events"):
            yield GaugeMetricFamily(f"holdfast_{name}", f"Stored {name}.", value=getattr(counts, name))
        yield GaugeMetricFamily("holdfast_turns_running", "Sessions with a worker.", value=len(gateway.runner.working))
        yield GaugeMetricFamily("holdfast_followers", "Open event streams.", value=gateway.streams.open)
        yield GaugeMetricFamily(
            "holdfast_writable", "1 while the disk takes writes.", value=gateway.store.health.writable
        )
        yield CounterMetricFamily("holdfast_events_sent", "Events sent to followers.", value=gateway.streams.sent)
        commits, seconds = gateway.store.commit_stats
        yield CounterMetricFamily("holdfast_commits", "Transactions committed.", value=commits)
        yield CounterMetricFamily("holdfast_commit_seconds", "Time spent in them.", value=seconds)


async def exposition(gateway: Gateway) -> bytes:
    """All figures as text."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Figures(gateway, await gateway.store.counts()))
    return generate_latest(registry)
