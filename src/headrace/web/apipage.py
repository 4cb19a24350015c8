"""The API reference as a page of plain HTML, rendered on the server without external resources."""

import re
from collections.abc import Mapping
from html import escape
from typing import Any

from headrace.edge.problem_details import MEDIA_TYPE

Document = Mapping[str, Any]

_METHODS = ("get", "post", "put", "patch", "delete")
# What nearly any operation can answer; said once.
_EVERYWHERE = frozenset(
    (
        "unstorable_text", "number_out_of_range", "rate_limited", "unavailable", "internal", "unauthenticated",
        "scope_missing", "invalid_json", "body_too_large", "unsupported_media_type", "validation_failed",
    )
)  # fmt: skip


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
    return "".join([*parts, _objects(description), _errors(description), "</main>"])


def _errors(description: Document) -> str:
    """Each error once: the operations name the codes that they answer with."""
    rows = [
        f'<tr id="error-{escape(code)}"><td><code>{escape(code)}</code></td><td>{example["value"]["status"]}</td>'
        f"<td>{_prose(example['value']['detail'])}</td></tr>"
        for code, example in sorted(description.get("components", {}).get("examples", {}).items())
    ]
    everywhere = ", ".join(sorted(_EVERYWHERE))
    head = f"<h2>Errors</h2><p>Any operation may answer <code>{everywhere}</code>.</p>"
    return f"{head}<table><tr><th>code</th><th>status</th><th></th></tr>{''.join(rows)}</table>"


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
        f"<td>{_type(description, one.get('schema', {}))}</td>"
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
    for status, answer in sorted(operation.get("responses", {}).items()):
        response = _resolve(description, answer)
        codes = response.get("content", {}).get(MEDIA_TYPE, {}).get("examples", {})
        if codes:
            named = ", ".join(code for code in codes if code not in _EVERYWHERE)
            rows += [f"<tr><td>{escape(status)}</td><td><code>{escape(named)}</code></td></tr>"] if named else []
            continue
        schema = response.get("content", {}).get("application/json", {}).get("schema", {})
        fields = _fields(description, schema) if schema else ""
        rows.append(f"<tr><td>{escape(status)}</td><td>{_prose(response.get('description', ''))}{fields}</td></tr>")
    return f"<h3>Answers</h3><table>{''.join(rows)}</table>"


def _fields(description: Document, schema: Document) -> str:
    if "$ref" in schema or "properties" not in schema:
        return f"<p>{_type(description, schema)}</p>"
    return _table(description, schema)


def _table(description: Document, schema: Document) -> str:
    required = schema.get("required", ())
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code>{_star(name in required)}</td><td>{_type(description, field)}</td>"
        f"<td>{_prose(field.get('description', ''))}</td></tr>"
        for name, field in schema.get("properties", {}).items()
    )
    return f"<table>{rows}</table>"


def _objects(description: Document) -> str:
    """Each object once: bodies, answers and other objects link to it."""
    schemas = description.get("components", {}).get("schemas", {})
    return "<h2>Objects</h2>" + "".join(
        f'<h3 id="object-{escape(name)}">{escape(name)}</h3>{_table(description, schema)}'
        for name, schema in sorted(schemas.items())
        if "properties" in schema
    )


def _type(description: Document, schema: Document) -> str:
    """As HTML, with links to objects."""
    if "anyOf" in schema:
        return " | ".join(_type(description, option) for option in schema["anyOf"])
    target = _resolve(description, schema)
    if "$ref" in schema and "properties" in target:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#object-{name}"><code>{name}</code></a>'
    if "items" in target:
        return f"list of {_type(description, target['items'])}"
    return f"<code>{escape(_scalar(target))}</code>"


def _scalar(schema: Document) -> str:
    if "enum" in schema:
        return " | ".join(str(value) for value in schema["enum"])
    if "const" in schema:
        return str(schema["const"])
    kind = str(schema.get("type", "any"))
    limits = [f"{sign} {schema[name]}" for name, sign in _LIMITS.items() if name in schema]
    return " ".join([f"{kind} ({schema['format']})" if "format" in schema else kind, *limits])


_LIMITS = {"minimum": "≥", "maximum": "≤", "minLength": "length ≥", "maxLength": "length ≤"}


def _resolve(description: Document, schema: Document) -> Document:
    reference = schema.get("$ref")
    if reference is None:
        return schema
    target = description
    for part in reference.split("/")[1:]:
        target = target[part]
    return target


def _star(required: object) -> str:
    return ' <span class="dim">required</span>' if required else ""


def _prose(text: str) -> str:
    """Render the two Markdown marks of our descriptions, `code` and **strong**."""
    # A single newline only wraps the source.
    unwrapped = re.sub(r"(?<!\n)\n(?!\n)", " ", text.strip())
    marked = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(unwrapped))
    return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", marked)
