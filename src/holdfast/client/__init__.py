"""A typed client of the gateway, for programs; the command line is its first user.

from holdfast.client import Client

print(Client().run("say hello", profile="demo").text)
"""

from holdfast.client.client import Client
from holdfast.client.errors import (
    ApiError,
    ClientError,
    ConnectionLost,
    GatewayAway,
    GatewayNotAnswering,
    GatewayNotRunning,
    StartFailed,
    UnexpectedResponse,
)
from holdfast.client.events import EventReceived, StreamItem, TextDelta
from holdfast.client.output import OutputItem, OutputPiece
from holdfast.client.reconnect import Disconnected, Reconnected

__all__ = [
    "ApiError",
    "Client",
    "ClientError",
    "ConnectionLost",
    "Disconnected",
    "EventReceived",
    "GatewayAway",
    "GatewayNotAnswering",
    "GatewayNotRunning",
    "OutputItem",
    "OutputPiece",
    "Reconnected",
    "StartFailed",
    "StreamItem",
    "TextDelta",
    "UnexpectedResponse",
]
