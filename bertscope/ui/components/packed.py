"""How pictures travel: a header and bytes; and the same picture as a page that works by itself."""

from __future__ import annotations

import base64
import html
import json
import struct
from functools import cache
from pathlib import Path

from bertscope.ui import theme

_FOLDER = Path(__file__).parent
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; \
style-src 'unsafe-inline'; img-src data: blob:">
<title>{title}</title>
<style>
:root {{ --st-font: sans-serif; --st-text-color: {text}; --st-background-color: {background};
  --st-border-color: {grid}; --st-primary-color: {main}; --st-base-radius: 6px; }}
body {{ margin: 1rem; color: {text}; background: {background}; font-family: sans-serif; }}
{css}
</style>
</head>
<body>
<h3>{title}</h3>
{body}
<script>
{script}
show({{ data: Uint8Array.from(atob("{data}"), (c) => c.charCodeAt(0)), parentElement: document.body,
  setTriggerValue() {{}} }});
</script>
</body>
</html>
"""


@cache
def source(name: str) -> str:
    """A file of this folder."""
    return (_FOLDER / name).read_text("utf-8")


def script(name: str) -> str:
    """``show({data, parentElement, setTriggerValue})`` of a picture, with what it needs."""
    return source("drawing.js") + source(name)


def pack(header: dict, payload: bytes) -> bytes:
    """What ``unpack`` in drawing.js reads: 4 bytes of length, JSON, the payload."""
    head = json.dumps(header).encode()
    return struct.pack("<I", len(head)) + head + payload


def page(name: str, body: str, data: bytes, title: str) -> bytes:
    """A picture as one HTML file that asks nobody for anything.

    Args:
        name: of its script. body: its HTML, ours. data: of :func:`pack`; texts in it reach the page as
            base64 and are shown as text. title: any text.
    """
    colours = {name: theme.colour(name) for name in ("text", "background", "grid", "main")}
    return _PAGE.format(title=html.escape(title), css=source("drawing.css"), body=body,
                        script=script(name), data=base64.b64encode(data).decode(), **colours).encode()
