"""The report as one HTML file that opens offline: the live page's own styles and scripts, inlined.

The rule it keeps: what came from a site goes in as JSON data and is shown as text, never as markup;
the file loads nothing, and says so to the browser.
"""

from __future__ import annotations

import base64
import json
from hashlib import sha256
from typing import Any

from .pagefiles import SCRIPTS, chart_library, static

_MARKUP = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


def html(data: dict[str, Any]) -> str:
    """The whole file."""
    library = chart_library()
    styles = [static("page.css"), *([library["uplot.css"]] if library else [])]
    scripts = [*([library["uplot.js"]] if library else [])]
    scripts += [static(name) for name in SCRIPTS if name not in {"control.js", "detail.js"}]
    allowed = " ".join(_hash(script) for script in scripts)
    looks = " ".join(_hash(style) for style in styles)
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src {looks}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    head = [f'<meta http-equiv="Content-Security-Policy" content="{policy}">']
    head += [f"<style>{style}</style>" for style in styles]
    values = json.dumps(data, allow_nan=False).translate(_MARKUP)
    tail = [f'<script type="application/json" id="data">{values}</script>']
    tail += [f"<script>{script}</script>" for script in scripts]
    page = static("page.html").replace("<!-- head -->", "\n".join(head))
    return page.replace("<!-- scripts -->", "\n".join(tail))


def _hash(content: str) -> str:
    digest = base64.b64encode(sha256(content.encode()).digest()).decode()
    return f"'sha256-{digest}'"
