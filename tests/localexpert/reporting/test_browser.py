"""A page in a browser, on a phone and on a wide screen: nothing is wider or cut."""

import html
import json
import re
import shlex
import shutil
import subprocess
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from localexpert.reporting import report
from tests.forecasts import normal

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium on the PATH")

FLAGS = shlex.split(
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync "
    "--disable-dev-shm-usage --allow-file-access-from-files "
    "--virtual-time-budget=20000 --dump-dom"
)
WIDTHS = (390, 1200)

# Each page is a frame as wide as the screen; what is wrong is written into the page.
OUTER = """<!DOCTYPE html><body>%(frames)s<pre id="found"></pre><script>
const found = [];
function name(e) {
  return e.tagName + '.' + e.className + ' ' + (e.textContent || '').slice(0, 40);
}
function measure(frame) {
  const width = frame.clientWidth, page = frame.contentDocument;
  const say = (what, e) => found.push([width, what, e ? name(e) : '']);
  page.querySelectorAll('details').forEach(e => { e.open = true; });
  if (page.documentElement.scrollWidth > width) say('page is wider', null);
  if (page.querySelectorAll('section').length < 9) say('sections are missing', null);
  for (const e of page.body.querySelectorAll('*')) {
    const box = e.getBoundingClientRect();
    const style = frame.contentWindow.getComputedStyle(e);
    const rolls = e.closest('.scroll') && !e.classList.contains('scroll');
    if (!rolls && (box.right > width + 0.5 || box.left < -0.5)) say('wider', e);
    const sticks = e.scrollWidth > e.clientWidth + 1;
    if (sticks && ['hidden', 'clip'].includes(style.overflowX)) say('cut', e);
    if (sticks && ['TD', 'TH'].includes(e.tagName)) say('out of its cell', e);
    if (e.tagName === 'IMG' && !(e.naturalWidth > 0)) say('no picture', e);
  }
  for (const box of page.querySelectorAll('.scroll')) {
    box.scrollLeft = 1e6;
    const edge = box.querySelector('table').getBoundingClientRect().right;
    if (edge > box.getBoundingClientRect().right + 1) say('out of reach', box);
  }
  for (const image of page.querySelectorAll('img')) measurePicture(image, say);
}
function measurePicture(image, say) {
  const [kind, data] = image.src.split(',');
  if (!kind.includes('svg')) return;
  const holder = document.createElement('div');
  const bytes = Uint8Array.from(atob(data), c => c.charCodeAt(0));
  const text = new TextDecoder().decode(bytes);
  holder.innerHTML = text.slice(text.indexOf('<svg'));
  document.body.append(holder);
  const svg = holder.querySelector('svg'), whole = svg.getBoundingClientRect();
  for (const e of svg.querySelectorAll('text')) {
    const box = e.getBoundingClientRect(), slack = 0.01 * whole.width;
    if (box.right > whole.right + slack || box.left < whole.left - slack ||
        box.bottom > whole.bottom + slack || box.top < whole.top - slack)
      say('cut in a picture', e);
  }
  holder.remove();
}
addEventListener('load', () => {
  document.querySelectorAll('iframe').forEach(measure);
  document.getElementById('found').textContent = JSON.stringify(found);
});
</script></body>"""


def look(pages, folder):
    """Return what is wrong with pages in frames of both widths."""
    frames = "".join(
        f'<iframe src="{page.as_uri()}" style="border:0;width:{width}px;height:900px">'
        "</iframe>"
        for page in pages
        for width in WIDTHS
    )
    outer = folder / "outer.html"
    outer.write_text(OUTER % {"frames": frames}, encoding="utf-8")
    profile = f"--user-data-dir={folder / 'profile'}"
    done = subprocess.run(
        [BROWSER, *FLAGS, profile, outer.as_uri()],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=True,
    )
    (told,) = re.findall('<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    return json.loads(html.unescape(told))


def write(path, scale, n=90, **options):
    """Write a report on columns with long names, long values and gaps."""
    rng = np.random.default_rng(0)
    long = "the_share_of_all_households_with_more_than_two_cars_in_year_"
    X = pd.DataFrame(
        rng.normal(size=(n, 40)), columns=[f"{long}{k}" for k in range(40)]
    )
    towns = [f"municipality of the very long name number {k} of all" for k in range(12)]
    X["a category whose values are as long as its own name, or longer"] = rng.choice(
        [*towns, None], n
    )
    at = 3.0 + np.linspace(-1.0, 1.0, n)
    y = scale * (at + 0.6 * rng.normal(size=n))
    dist = normal(scale * at, scale * np.linspace(0.3, 0.9, n))
    model = SimpleNamespace(predict_dist=lambda rows: dist[: len(rows)])
    groups = [X.columns[0], X.columns[-1]]
    given = {"groups": groups, "y_train": y, "importance_rows": 10, **options}
    return report(model, X, y, path, **given)


def test_no_page_is_wider_than_its_screen(page, tmp_path):
    houses = tmp_path / "houses.html"
    houses.write_text(page.source, encoding="utf-8")
    prices = write(
        tmp_path / "prices.html",
        1e5,
        target_name="the_price_of_the_house_with_everything_that_belongs_to_it",
        unit="EUR",
        row_names=[f"Street of the long names {k}, entrance {k}" for k in range(90)],
    )
    tiny = write(tmp_path / "tiny.html", 1e-6, pdf_friendly=True, importance_rows=0)
    pages = [houses, prices, tiny]
    assert look(pages, tmp_path) == []
    assert all(one.stat().st_size <= 1_000_000 for one in pages)
