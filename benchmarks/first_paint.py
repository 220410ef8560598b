"""How soon Chromium paints each page of the site, from disk: `python -m benchmarks first_paint`.

The site is that of the newest run in audit.sqlite; make one with `mpsmith audit` first.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tabulate import tabulate

STORE = Path("audit.sqlite")
ALLOWED_MS = 1000
LARGEST_BYTES = 2_000_000
ROUNDS = 3
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# Tells the time from the start of navigation to the first pixel, in the page's own clock, and to the end of loading.
OBSERVER = """<script>
new PerformanceObserver((list) => {
  const paint = list.getEntriesByName("first-contentful-paint")[0];
  if (paint) setTimeout(() => console.log(`PAINTED ${paint.startTime} ${performance.now()}`), 0);
}).observe({ type: "paint", buffered: true });
</script>"""


def main() -> None:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit("no Chromium here (Debian: apt-get install chromium)")
    if not STORE.exists():
        sys.exit(f"{STORE}: no such store (make one with mpsmith audit)")
    with tempfile.TemporaryDirectory(prefix="mpsmith-paint-") as folder:
        site = Path(folder) / "site"
        report = [sys.executable, "-m", "mpsmith", "report", "--store", str(STORE), "--site", str(site)]
        subprocess.run(report, check=True, capture_output=True)
        rows = []
        for page in (*sorted(site.glob("*.html")), largest(site / "operators")):
            times = [painted(browser, page) for _ in range(ROUNDS)]
            weight = page.stat().st_size
            rows.append(
                [str(page.relative_to(site)), f"{weight / 1000:,.0f}", f"{min(times):.0f}", f"{max(times):.0f}"]
            )
    print(tabulate(rows, ["page", "kB", "first paint, ms: least", "most"]))
    print(f"allowed: {ALLOWED_MS} ms, {LARGEST_BYTES / 1000:,.0f} kB")


def largest(folder: Path) -> Path:
    """The largest page in a folder."""
    return max(folder.glob("*.html"), key=lambda page: page.stat().st_size)


def painted(browser: str, page: Path) -> float:
    """Milliseconds from the start of navigation to the first pixel with content."""
    driven = page.with_name(f"painted-{page.name}")
    head = "<head>"
    text = page.read_text(encoding="utf-8")
    driven.write_text(text.replace(head, head + OBSERVER, 1), encoding="utf-8")
    with running(browser, driven) as lines:
        for line in lines:
            if told := re.search(r"PAINTED ([\d.]+)", line):
                driven.unlink()
                return float(told[1])
    sys.exit(f"{page.name}: Chromium ended without painting it")


@contextmanager
def running(browser: str, page: Path) -> Iterator[Iterator[str]]:
    """What a headless Chromium that shows a page writes to its log; it is stopped afterwards."""
    with tempfile.TemporaryDirectory(prefix="mpsmith-profile-", ignore_cleanup_errors=True) as profile:
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        options += ["--enable-logging=stderr", f"--user-data-dir={profile}", page.as_uri()]
        process = subprocess.Popen([browser, *options], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        assert process.stderr is not None
        try:
            yield iter(process.stderr)
        finally:
            process.kill()
            process.wait()
