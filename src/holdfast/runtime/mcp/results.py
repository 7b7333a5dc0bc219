"""What an MCP server answers, as text for the model: text as it is, everything else described."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, assert_never

from holdfast.runtime.tools.tool import ToolOutcome, bounded

if TYPE_CHECKING:
    from mcp_types import BlobResourceContents, CallToolResult, ContentBlock, TextResourceContents


def to_result(answer: CallToolResult, *, hide: Callable[[str], str]) -> ToolOutcome:
    """The outcome, with the text bounded and without the secrets that the server was given."""
    texts = [block.text for block in answer.content if block.type == "text"]
    parts = [_describe(block) for block in answer.content]
    if answer.structured_content is not None and not _is_repeated_as_text(answer.structured_content, texts):
        parts.append(json.dumps(answer.structured_content, ensure_ascii=False))
    text = "\n".join(parts) or "[no output]"
    clean = text.encode("utf-8", "backslashreplace").decode()
    return ToolOutcome("failed" if answer.is_error else "done", bounded(hide(clean)))


def _is_repeated_as_text(structured: Any, texts: list[str]) -> bool:
    """Servers repeat their structured content as text, for clients that do not know it."""
    inner = (
        structured.get("result", structured) if isinstance(structured, dict) and len(structured) == 1 else structured
    )
    if isinstance(inner, list) and len(texts) == len(inner) != 1:
        return all(_is_same(text, item) for text, item in zip(texts, inner, strict=True))
    return len(texts) == 1 and (_is_same(texts[0], structured) or _is_same(texts[0], inner))


def _is_same(text: str, value: Any) -> bool:
    if isinstance(value, str):
        return text == value
    try:
        return bool(json.loads(text) == value)
    except ValueError:
        return False


def _describe(block: ContentBlock) -> str:
    match block.type:
        case "text":
            return block.text
        case "image" | "audio":
            return f"[{block.type}, {block.mime_type}, {_size(block.data)}]"
        case "resource_link":
            return f"[link to {block.name}: {block.uri}]"
        case "resource":
            return _resource(block.resource)
        case _ as never:
            assert_never(never)


def _resource(resource: TextResourceContents | BlobResourceContents) -> str:
    kind = f", {resource.mime_type}" if resource.mime_type else ""
    if hasattr(resource, "text"):
        return f"[resource {resource.uri}{kind}]\n{resource.text}"
    return f"[resource {resource.uri}{kind}, {_size(resource.blob)}]"


def _size(base64: str) -> str:
    size = len(base64) * 3 // 4
    return f"{size} bytes" if size < 1000 else f"{round(size / 1000)} kB"
