"""HTML components of our own, drawn in the page itself (no iframe, no library, offline).

Texts reach the page as data and are set with ``textContent``: they are shown, never interpreted.
"""
