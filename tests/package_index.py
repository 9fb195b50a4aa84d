"""A package index on this machine, with the hand-made answers of the folder `index`, and a manifest to refresh."""

from __future__ import annotations

import contextlib
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from ale_velocity.timeline.index import CONTENT_TYPE

# Three series, two of which move ale-py; comments in the places where people write them.
MANIFEST = """# The timeline.
[series.ale-py]  # the main one
package = "ale-py"
held = { torch = "2.13.0" }  # ] is no end
releases = [
    # The last one without seeds.
    { version = "0.11.2", date = 2025-07-12T22:18:41Z, note = "[series.torch] ]" },
    { version = "0.12.1", date = 2026-08-16T23:18:56Z },
    # Append below.
]

[series.torch]
package = "torch"
held = { ale-py = "0.12.1" }
last_patch_only = true
releases = [
    { version = "2.15.0", date = 2026-10-28T15:16:25Z, python = ">=3.11" },
]

[series.ale-py-torch-2.11]
package = "ale-py"
held = { torch = "2.11.0" }
releases = [
  { version = "0.12.1", date = 2026-08-16T23:18:56Z },  # no comma after the bracket
]
""".replace("ale-py-torch-2.11]", '"ale-py-torch-2.11"]')


class Index:
    """What the server answers: `pages` has status, content type and content of a path; `length` is what it promises."""

    def __init__(self):
        folder = Path(__file__).parent / "index"
        self.pages = {f"/simple/{path.stem}/": (200, CONTENT_TYPE, path.read_bytes()) for path in folder.glob("*.json")}
        self.asked = []
        self.length = None
        self.delay_s = 0.0


@contextlib.contextmanager
def serve():
    """Serve an index here, and yield it with its `url`."""
    offered = Index()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            offered.asked.append((self.path, self.headers["Accept"]))
            time.sleep(offered.delay_s)
            status, kind, content = offered.pages.get(self.path, (404, "text/html", b"not here"))
            with contextlib.suppress(OSError):  # the client may have had enough
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(offered.length or len(content)))
                self.end_headers()
                self.wfile.write(content)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        offered.url = f"http://127.0.0.1:{server.server_port}/simple"
        try:
            yield offered
        finally:
            server.shutdown()
            thread.join()
