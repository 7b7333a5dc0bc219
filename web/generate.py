"""The page's types, written from the gateway's own contract and the log's own events; and the sentences for these.

python web/generate.py            write web/src/api/types.gen.ts and web/src/log/sentences.gen.ts
python web/generate.py --check    fail when they are not what would be written
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, get_args

import msgspec

from holdfast.domain.events import Record
from holdfast.domain.transcript_items import AnyItem
from holdfast.domain.transcript_text import RESET_WORDS, SENTENCES
from holdfast.gateway.openapi import describe
from holdfast.gateway.server import PARTS
from holdfast.schemas.sessions import Delta

SOURCES = Path(__file__).parent / "src"
HEAD = "// Written by web/generate.py from {}; `make types` writes it anew. Not edited by hand.\n"
OURS = {"Record": "LogRecord", "Error": "ApiError"}
"""Names that mean something else in TypeScript."""
Schema = dict[str, Any]


def main() -> int:
    """Write the files, or check them."""
    files = {SOURCES / "api" / "types.gen.ts": types(), SOURCES / "log" / "sentences.gen.ts": sentences()}
    if "--check" not in sys.argv[1:]:
        for path, text in files.items():
            path.write_text(text, encoding="utf-8")
        return 0
    outdated = [path for path, text in files.items() if path.read_text(encoding="utf-8") != text]
    for path in outdated:
        sys.stderr.write(f"{path} is not what the gateway's contract says. Run `make types`.\n")
    return 1 if outdated else 0


def sentences() -> str:
    """The templates of what is said about a session."""
    parts = [HEAD.format("domain/transcript_text.py")]
    for constant, table in {"SENTENCES": SENTENCES, "RESET_WORDS": RESET_WORDS}.items():
        lines = [f"  {json.dumps(name)}: {json.dumps(text, ensure_ascii=False)}," for name, text in table.items()]
        parts += [f"export const {constant} = {{", *lines, "} as const;", ""]
    return "\n".join(parts)


def types() -> str:
    """The types of everything that is sent."""
    document = describe(PARTS)
    shown = [Record, Delta, *get_args(AnyItem)]
    _, events = msgspec.json.schema_components(shown, ref_template="#/components/schemas/{name}")
    schemas: dict[str, Schema] = document["components"]["schemas"] | events
    head = HEAD.format("the gateway's contract")
    parts = [head, *(_declaration(name, schemas[name]) for name in sorted(schemas)), _routes(document["paths"])]
    return "\n".join(parts)


def _declaration(name: str, schema: Schema) -> str:
    name, body = OURS.get(name, name), _type(schema)
    if body.startswith("{\n"):
        return f"export interface {name} {body}\n"
    return f"export type {name} = {body};\n"


def _type(schema: Schema, indent: str = "") -> str:
    if "$ref" in schema:
        name = str(schema["$ref"]).rsplit("/", 1)[-1]
        return OURS.get(name, name)
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if "anyOf" in schema:
        return " | ".join(_type(one, indent) for one in schema["anyOf"])
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(_type(schema | {"type": one}, indent) for one in kind)
    if kind == "array":
        inner = _type(schema.get("items", {}), indent)
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
    if kind == "object":
        return _object(schema, indent)
    plain = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
    return plain.get(str(kind), "unknown")


def _object(schema: Schema, indent: str) -> str:
    if "properties" not in schema:
        extra = schema.get("additionalProperties")
        return f"Record<string, {_type(extra, indent)}>" if isinstance(extra, dict) else "Record<string, unknown>"
    required = set(schema.get("required", ()))
    lines = ["{"]
    for name, value in schema["properties"].items():
        optional = "" if name in required else "?"  # an old record of the log lacks what was added since
        lines.append(f"{indent}  readonly {name}{optional}: {_type(value, indent + '  ')};")
    return "\n".join([*lines, indent + "}"])


def _routes(paths: dict[str, dict[str, Any]]) -> str:
    """What each route takes and gives."""
    lines = ["export interface Routes {"]
    for path, operations in sorted(paths.items()):
        for method, operation in sorted(operations.items()):
            takes = _content(operation.get("requestBody", {}))
            success = next(answer for code, answer in operation["responses"].items() if str(code).startswith("2"))
            gives = _content(success)
            lines.append(
                f'  readonly "{method.upper()} {path}": {{ readonly takes: {takes}; readonly gives: {gives} }};'
            )
    return "\n".join([*lines, "}", ""])


def _content(holder: dict[str, Any]) -> str:
    schema = holder.get("content", {}).get("application/json", {}).get("schema")
    return _type(schema) if schema else "undefined"


if __name__ == "__main__":
    raise SystemExit(main())
