"""The style sheet of a report: for phones, wide screens, paper, light and dark."""

STYLE = """
:root { color-scheme: light dark; --ink: #1d2733; --soft: #55606d; --page: #fff;
  --box: #f3f5f8; --line: #d5dae1; --good: #1a7f4b; --bad: #b3261e; --note: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --soft: #a8b2be;
  --page: #14181d; --box: #1f252c; --line: #39424d; --good: #5fd39a; --bad: #ff8a80;
  --note: #ffc766; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0 auto; padding: 1rem; max-width: 46rem; color: var(--ink);
  background: var(--page); overflow-wrap: anywhere;
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue",
  Arial, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .5rem 0 .25rem; }
h2 { font-size: 1.3rem; line-height: 1.25; margin: 2.5rem 0 .5rem;
  padding-top: .8rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .3rem; }
p { margin: .5rem 0; }
.soft, figcaption, caption { color: var(--soft); font-size: .9rem; }
.cards { display: grid; gap: .6rem; margin: 1rem 0;
  grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); }
.card { background: var(--box); border-radius: .5rem; padding: .6rem .8rem; }
.card b { display: block; font-size: 1.35rem; line-height: 1.3; }
ul.findings { list-style: none; padding: 0; }
ul.findings li { margin: .5rem 0; padding: .5rem .8rem; background: var(--box);
  border-left: .3rem solid var(--line); border-radius: .2rem; }
ul.findings li.warning { border-color: var(--bad); }
ul.findings li.note { border-color: var(--note); }
ul.findings li.fine { border-color: var(--good); }
ul.findings li b { margin-right: .3rem; }
figure { margin: 1rem 0; break-inside: avoid; page-break-inside: avoid; }
figure img { display: block; width: 100%; max-width: 34rem; height: auto;
  background: #fff; border-radius: .4rem; }
figure.wide img { max-width: 100%; }
figcaption { margin-top: .4rem; }
.scroll { overflow-x: auto; margin: 1rem 0; overflow-wrap: normal; }
table { border-collapse: collapse; font-size: .9rem;
  font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: .4rem; }
th, td { padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--line);
  text-align: right; vertical-align: top; }
th:first-child { text-align: left; }
thead th { border-bottom: 2px solid var(--line); }
tbody th { font-weight: 500; min-width: 7rem; max-width: 16rem;
  overflow-wrap: anywhere; }
td { white-space: nowrap; }
footer { margin-top: 3rem; border-top: 1px solid var(--line); }
@page { margin: 15mm; }
@media print {
  :root { color-scheme: light; --ink: #000; --soft: #444; --page: #fff;
    --box: #f3f5f8; --line: #bbb; --good: #1a7f4b; --bad: #b3261e; --note: #8a5a00; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  h2, h3 { break-after: avoid; page-break-after: avoid; }
  li, .card, tr { break-inside: avoid; page-break-inside: avoid; }
  thead { display: table-header-group; }
  table { break-inside: avoid; page-break-inside: avoid; }
  table.long { break-inside: auto; page-break-inside: auto; }
  figure img { max-width: 12.5cm; }
  figure.wide img { max-width: 15cm; }
  .scroll { overflow: visible; }
  table { font-size: 8pt; }
  td { white-space: normal; }
}
"""

# For pages that are to be printed: light, whatever the reader's screen is set to, and
# every section begins on a page of its own.
PAPER = f"""{STYLE}
:root {{ color-scheme: light; --ink: #000; --soft: #444; --page: #fff; --box: #f3f5f8;
  --line: #bbb; --good: #1a7f4b; --bad: #b3261e; --note: #8a5a00; }}
@media print {{ section {{ break-before: page; page-break-before: always; }}
  section:first-of-type {{ break-before: auto; page-break-before: auto; }} }}
"""
