"""The API reference as a page of plain HTML, rendered on the server without external resources."""

import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

Document = Mapping[str, Any]

_METHODS = ("get", "post", "put", "patch", "delete")
_MAX_DEPTH = 3


def render(description: Document) -> str:
    """The page's body."""
    info = description["info"]
    parts = [
        f'<main><h1>{escape(info["title"])} API</h1><p class="dim">Version {escape(info["version"])} · '
        '<a href="/openapi.json">openapi.json</a> · <a href="/">home</a></p>',
        f'<div class="text">{_prose(info.get("description", ""))}</div>',
    ]
    for tag, operations in _by_tag(description).items():
        parts.append(f"<h2>{escape(tag)}</h2>")
        parts += [_operation(description, path, method, operation) for path, method, operation in operations]
    return "".join([*parts, "</main>"])


def _by_tag(description: Document) -> dict[str, list[tuple[str, str, Document]]]:
    found: dict[str, list[tuple[str, str, Document]]] = {tag["name"]: [] for tag in description.get("tags", ())}
    for path, methods in description.get("paths", {}).items():
        for method in _METHODS:
            if method in methods:
                tag = (methods[method].get("tags") or ["other"])[0]
                found.setdefault(tag, []).append((path, method, methods[method]))
    return {tag: operations for tag, operations in found.items() if operations}


def _operation(description: Document, path: str, method: str, operation: Document) -> str:
    name = operation["operationId"]
    return (
        f'<details id="{escape(name)}"><summary><span class="method">{method.upper()}</span> '
        f'<code>{escape(path)}</code> <span class="dim">{escape(operation.get("summary", ""))}</span></summary><div>'
        f'<p class="text">{_prose(operation.get("description", ""))}</p>'
        f"{_parameters(description, operation)}{_body(description, operation)}{_responses(description, operation)}"
        "</div></details>"
    )


def _parameters(description: Document, operation: Document) -> str:
    rows = [
        f"<tr><td><code>{escape(one['name'])}</code>{_star(one.get('required'))}</td><td>{escape(one['in'])}</td>"
        f"<td><code>{escape(_type(description, one.get('schema', {})))}</code></td>"
        f"<td>{_prose(one.get('description', ''))}</td></tr>"
        for one in operation.get("parameters", ())
    ]
    if not rows:
        return ""
    return f"<h3>Parameters</h3><table><tr><th>name</th><th>in</th><th>type</th><th></th></tr>{''.join(rows)}</table>"


def _body(description: Document, operation: Document) -> str:
    content = operation.get("requestBody", {}).get("content", {})
    return "".join(
        f'<h3>Body <span class="dim">{escape(media)}</span></h3>{_fields(description, entry.get("schema", {}))}'
        for media, entry in content.items()
    )


def _responses(description: Document, operation: Document) -> str:
    rows = []
    for status, response in sorted(operation.get("responses", {}).items()):
        schema = response.get("content", {}).get("application/json", {}).get("schema", {})
        fields = _fields(description, schema) if schema else ""
        rows.append(f"<tr><td>{escape(status)}</td><td>{_prose(response.get('description', ''))}{fields}</td></tr>")
    return f"<h3>Answers</h3><table>{''.join(rows)}</table>"


def _fields(description: Document, schema: Document) -> str:
    rows = "".join(_field_rows(description, schema, 0))
    return f"<table>{rows}</table>" if rows else f"<p><code>{escape(_type(description, schema))}</code></p>"


def _field_rows(description: Document, schema: Document, depth: int) -> Iterator[str]:
    target = _resolve(description, schema)
    required = target.get("required", ())
    for name, field in target.get("properties", {}).items():
        yield (
            f'<tr><td class="deep{depth}"><code>{escape(name)}</code>{_star(name in required)}</td>'
            f"<td><code>{escape(_type(description, field))}</code></td>"
            f"<td>{_prose(field.get('description', ''))}</td></tr>"
        )
        if depth < _MAX_DEPTH:
            yield from _field_rows(description, _inner(description, field), depth + 1)


def _inner(description: Document, field: Document) -> Document:
    """The object schema of a field, also inside a list or an optional."""
    target = _resolve(description, field)
    if "anyOf" in target:
        options = [option for option in target["anyOf"] if option.get("type") != "null"]
        return _inner(description, options[0]) if len(options) == 1 else {}
    return _inner(description, target["items"]) if "items" in target else target


def _type(description: Document, schema: Document) -> str:
    if "anyOf" in schema:
        return " | ".join(_type(description, option) for option in schema["anyOf"])
    target = _resolve(description, schema)
    if "enum" in target:
        return " | ".join(str(value) for value in target["enum"])
    if "const" in target:
        return str(target["const"])
    if "items" in target:
        return f"list of {_type(description, target['items'])}"
    kind = str(target.get("type", "any"))
    limits = [f"{sign} {target[name]}" for name, sign in _LIMITS.items() if name in target]
    return " ".join([f"{kind} ({target['format']})" if "format" in target else kind, *limits])


_LIMITS = {"minimum": "≥", "maximum": "≤", "minLength": "length ≥", "maxLength": "length ≤"}


def _resolve(description: Document, schema: Document) -> Document:
    reference = schema.get("$ref")
    if reference is None:
        return schema
    target: Document = description["components"]["schemas"][reference.rpartition("/")[2]]
    return target


def _star(required: object) -> str:
    return ' <span class="dim">required</span>' if required else ""


def _prose(text: str) -> str:
    """Render the two Markdown marks of our descriptions, `code` and **strong**."""
    # A single newline only wraps the source.
    unwrapped = re.sub(r"(?<!\n)\n(?!\n)", " ", text.strip())
    marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(unwrapped))
    return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", marked)
