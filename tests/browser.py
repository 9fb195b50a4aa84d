"""A real browser on a folder that is served on this machine; everything else is out of its reach."""

from __future__ import annotations

import functools
import http.server
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

LOADED_WITHIN_S = 20
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",  # tests run as root in containers
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)


class Browser:
    """Chromium on `folder`; `get` opens a page of it."""

    def __init__(self, folder: Path) -> None:
        chromium, driver = find_chromium()
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.downloads = Path(self._profile.name) / "downloads"
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        for argument in (*ARGUMENTS, f"--user-data-dir={self._profile.name}/profile"):
            options.add_argument(argument)
        options.add_experimental_option("prefs", {"download.default_directory": str(self.downloads)})
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        handler = functools.partial(_QuietHandler, directory=str(folder))
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.root = f"http://127.0.0.1:{self._server.server_port}/"
        self.driver = webdriver.Chrome(options=options, service=Service(driver))

    def close(self) -> None:
        """End the browser and the server."""
        self.driver.quit()
        self._server.shutdown()
        self._server.server_close()
        self._profile.cleanup()

    def get(self, page: str) -> None:
        """Open a page afresh (its address may differ from the last one's in its fragment only), and wait for it."""
        self.driver.get("about:blank")
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)
        self.driver.get(self.root + page)
        self.settle()

    def settle(self) -> None:
        """Wait until the page's data are in and drawn."""
        self.until("return document.readyState === 'complete' && !document.querySelector('[aria-busy=true]')")

    def until(self, script: str) -> None:
        """Wait until a script returns something true."""
        deadline = time.monotonic() + LOADED_WITHIN_S
        while not self.driver.execute_script(script):
            assert time.monotonic() < deadline, f"{self.driver.current_url}: never true: {script}"
            time.sleep(0.05)

    def pick(self, name: str, value: str) -> None:
        """Choose a value of a picker."""
        Select(self.driver.find_element(By.NAME, name)).select_by_value(value)
        self.settle()

    def options(self, name: str) -> list[str]:
        """Return what a picker offers, as people read it."""
        return [option.text for option in Select(self.driver.find_element(By.NAME, name)).options]

    def table(self, selector: str) -> list[list[str]]:
        """Return the texts of a table, its head first; tables are built when they are opened."""
        self.driver.execute_script("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        self.until("return [...document.querySelectorAll('details .scroll')].every(one => one.firstChild)")
        script = """return [...document.querySelectorAll(arguments[0] + " tr")].map(
            row => [...row.cells].map(cell => cell.textContent));"""
        return self.driver.execute_script(script, selector)

    def charts(self) -> dict[str, list[dict]]:
        """Return what Plotly was given to draw: traces by section."""
        script = """return Object.fromEntries([...document.querySelectorAll(".chart")].map(
            chart => [chart.closest("section").id, JSON.parse(JSON.stringify(chart.data ?? []))]));"""
        return self.driver.execute_script(script)

    def errors(self) -> list[str]:
        """Return what the console said since the page was opened."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[tuple[str, int]]:
        """Return the address and the bytes received of every request since the page was opened."""
        addresses, sizes = {}, {}
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            params = message["params"]
            if message["method"] == "Network.requestWillBeSent":
                addresses[params["requestId"]] = params["request"]["url"]
            elif message["method"] == "Network.loadingFinished":
                sizes[params["requestId"]] = params["encodedDataLength"]
        return [(address, sizes.get(number, 0)) for number, address in addresses.items() if address != "about:blank"]

    def view(self, width: int, scheme: str) -> None:
        """Look at the page as on a screen of `width` pixels, in the colour scheme "light" or "dark"."""
        metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


class _QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_args: object) -> None:
        """Say nothing."""


def find_chromium() -> tuple[str, str]:
    """Return the paths of chromium and its driver, installing the distribution's where that can be done."""
    found = _which()
    if found is None:
        is_ubuntu = "ID=ubuntu" in Path("/etc/os-release").read_text(encoding="utf-8")
        packages = ["chromium-browser", "chromium-chromedriver"] if is_ubuntu else ["chromium", "chromium-driver"]
        install = ["apt-get", "install", "--yes", "--no-install-recommends", *packages]
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            message = f"these tests need Chromium and its driver; on Debian and Ubuntu: sudo {' '.join(install)}"
            raise RuntimeError(message)
        subprocess.run(["apt-get", "update"], check=True, capture_output=True)
        subprocess.run(
            install, check=True, capture_output=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        )
        found = _which()
        assert found, f"{' '.join(install)} brought no chromium and chromedriver"
    return found


def _which() -> tuple[str, str] | None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    return (chromium, driver) if chromium and driver else None
