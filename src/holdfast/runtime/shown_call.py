"""A call as a person sees it before the approval, and the digest that binds the approval to it.

The digest covers the tool, the working directory and every argument, also those that the call leaves out; for a change
of a file also the file as it is now, for a command the directory that its `cwd` leads to now. What runs must have the
same digest as what was shown.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import blake2s

import msgspec

from holdfast.domain.events.parts import ShownArgument
from holdfast.runtime.tools.context import ToolContext, ToolFailed, printable
from holdfast.runtime.tools.tool import AnyTool, Preview, Tool

VALUE_SHOWN = 4_000
DIFF_SHOWN = 20_000


@dataclass(frozen=True, slots=True)
class ShownCall:
    """A call as it is shown."""

    arguments: list[ShownArgument]
    digest: str
    before: str
    """The digest of the file that it would change; empty for all other calls."""

    def is_approved_by(self, digest: str, *, started: bool) -> bool:
        """Return whether an approval with this digest is for this call.

        Of a call that was started before a crash, the file or the directory may have been changed by itself.
        """
        call, _, _ = digest.partition("/")
        return bool(digest) and (digest == self.digest or (started and call == self.digest.partition("/")[0]))


def shown_call(tool: AnyTool, context: ToolContext, arguments: str, handed_to: str = "") -> ShownCall:
    """Return every argument in order, and the digest of all. `handed_to` is another profile that would act."""
    values = _values(tool, arguments)
    if handed_to:
        values.append(("handed to the profile", handed_to, False))
    preview = _preview(tool, context, arguments)
    described = json.dumps([tool.name, str(context.cwd), {name: value for name, value, _ in values}], sort_keys=True)
    digest = _digest(described)
    where = {name: _directory(context, value) for name, value, _ in values if name == "cwd" and isinstance(tool, Tool)}
    shown = [
        _shown(name, where.get(name, value), usual)
        for name, value, usual in values
        if preview is None or name not in preview.instead_of
    ]
    if preview is None:
        return ShownCall(shown, "/".join([digest, *map(_digest, where.values())]), "")
    return ShownCall([*shown, _bounded("diff", preview.diff, DIFF_SHOWN)], f"{digest}/{preview.before}", preview.before)


def _digest(text: str) -> str:
    return blake2s(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


def _values(tool: AnyTool, arguments: str) -> list[tuple[str, object, bool]]:
    """Return name, value, and whether that is the default."""
    given = json.loads(arguments or "{}")
    if not isinstance(tool, Tool):
        return [(name, value, False) for name, value in given.items()] if isinstance(given, dict) else []
    parsed = msgspec.to_builtins(tool.parse(arguments))
    return [(name, value, name not in given) for name, value in parsed.items()]


def _directory(context: ToolContext, value: object) -> str:
    """Return the full path of the directory in which a command runs."""
    try:
        return str(context.resolve(str(value)))
    except (ToolFailed, OSError):
        return str(context.cwd / str(value))


def _preview(tool: AnyTool, context: ToolContext, arguments: str) -> Preview | None:
    if not isinstance(tool, Tool) or tool.preview is None:
        return None
    return tool.preview(context, tool.parse(arguments))


def _shown(name: str, value: object, usual: bool) -> ShownArgument:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return _bounded(name, text, VALUE_SHOWN, usual=usual and name != "cwd")


def _bounded(name: str, text: str, limit: int, *, usual: bool = False) -> ShownArgument:
    left_out = max(0, len(text) - limit)
    safe = text[:limit].encode(errors="backslashreplace").decode()
    return ShownArgument(name=printable(name)[:100], value=safe, left_out=left_out, usual=usual)
