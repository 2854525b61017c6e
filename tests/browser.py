"""Headless Chromium for tests, driven over a pipe by its own protocol (Chrome DevTools), without another package."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

__all__ = ["Browser", "find_chromium"]

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")

# In a container there is often no other user to become, and a test opens files of its own alone.
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
)

KEYS = {"ArrowLeft": 37, "ArrowRight": 39, "Home": 36, "End": 35, "Tab": 9, "Enter": 13}


def find_chromium() -> str | None:
    """The path of a Chromium, if there is one."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """A browser with one page.

    Attributes:
        requests: the addresses that the page has asked for since it was opened.
        complaints: what it has written to the console, and errors of its script.
    """

    def __init__(self, timeout: float = 60) -> None:
        path = find_chromium()
        assert path is not None, "these tests need Chromium: apt-get install chromium"
        self._timeout = timeout
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        commands, self._to = os.pipe()
        self._from, answers = os.pipe()

        def pipes() -> None:  # as descriptors 3 and 4, by way of others that neither is
            for k, descriptor in ((3, os.dup2(commands, 63)), (4, os.dup2(answers, 64))):
                os.dup2(descriptor, k)

        self._process = subprocess.Popen(
            [path, *OPTIONS, "--remote-debugging-pipe", f"--user-data-dir={self._folder.name}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(3, 4),
            preexec_fn=pipes,
        )
        os.close(commands)
        os.close(answers)
        self._unread = b""
        self._number = 0
        self._session: str | None = None
        self.requests: list[str] = []
        self.complaints: list[str] = []
        target = self.do("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.do("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log", "Accessibility"):
            self.do(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._session = None
        try:
            self.do("Browser.close")
            self._process.wait(10)
        except (OSError, AssertionError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        os.close(self._from)
        self._folder.cleanup()

    def do(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol, and its result."""
        self._number += 1
        command: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._to, json.dumps(command).encode() + b"\0")
        number = self._number
        answer = self._until(lambda message: message.get("id") == number)
        assert "error" not in answer, (method, answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    def _until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Read messages up to a wanted one."""
        while True:
            while b"\0" not in self._unread:
                assert select.select([self._from], [], [], self._timeout)[0], "Chromium does not answer"
                piece = os.read(self._from, 1 << 16)
                assert piece, "Chromium has ended"
                self._unread += piece
            text, _, self._unread = self._unread.partition(b"\0")
            message = json.loads(text)
            self._note(message.get("method", ""), message.get("params", {}))
            if wanted(message):
                return dict(message)

    def _note(self, method: str, event: dict[str, Any]) -> None:
        match method:
            case "Network.requestWillBeSent":
                self.requests.append(event["request"]["url"])
            case "Runtime.exceptionThrown" | "Log.entryAdded" | "Runtime.consoleAPICalled":
                self.complaints.append(json.dumps(event))

    def open(self, path: Path, fragment: str = "") -> None:
        """Open a file, anew, and wait until it is there."""
        self.do("Page.navigate", url="about:blank")
        self._until(lambda message: message.get("method") == "Page.loadEventFired")
        self.requests.clear()
        self.complaints.clear()
        self.do("Page.navigate", url=path.as_uri() + fragment)
        self._until(lambda message: message.get("method") == "Page.loadEventFired")

    def ask(self, expression: str) -> Any:
        """The value of an expression of JavaScript in the page."""
        answer = self.do("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, *keys: str) -> None:
        """Press keys, one after the other, as a person does."""
        for key in keys:
            named = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
            self.do("Input.dispatchKeyEvent", type="rawKeyDown", **named)
            self.do("Input.dispatchKeyEvent", type="keyUp", **named)

    def click(self, selector: str) -> None:
        """Press the mouse's button in the middle of an element."""
        x, y = self.ask(
            f"(() => {{ const each = document.querySelector({json.dumps(selector)}); each.scrollIntoView("
            "{block: 'center', behavior: 'instant'}); const box = each.getBoundingClientRect();"
            "return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.do("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def screen(self, width: int = 1200, height: int = 900, media: str = "", dark: bool = False) -> None:
        """The size of the window, what it stands for, and whether the user likes it dark."""
        self.do("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.do("Emulation.setEmulatedMedia", media=media, features=[scheme])
