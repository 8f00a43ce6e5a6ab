# SPDX-License-Identifier: BSD-2-Clause
"""Opens a page of dl2-report in a headless Chromium and compares what it shows with the page's document.

    browser.py CHROMIUM PAGE
"""
import json
import os
import re
import subprocess
import sys

import page_text

# Before the page's own script: what it complains of. Behind it: what is shown, then rows by each column, twice.
WATCH = """<script>const said = [];
for (const kind of ["error", "warn"]) console[kind] = (...words) => said.push(words.join(" "));
for (const kind of ["error", "unhandledrejection", "securitypolicyviolation"])
  addEventListener(kind, event => said.push(kind + ": " + (event.message ?? event.reason)));</script>"""
PROBE = """<script>{
const all = (what, from = document) => [...from.querySelectorAll(what)];
const texts = what => all(what).map(one => one.textContent);
const rows = table => all("tbody tr", table).map(row => [...row.cells].map(one => one.textContent));
const range = document.querySelector("input[type=range]");
const curve = document.querySelector("figure svg [stroke^='rgb( 47, 111, 222)']");
const shown = {
  title: document.title, h1: texts("main > h1"), lead: texts("main > p.lead"),
  sections: all("main > section").map(one => [one.id, one.querySelector(":scope > h2")?.textContent ?? null]),
  texts: texts("section :is(p, h3, pre)"), items: texts("section li"), summaries: texts("section summary"),
  tables: all("table").map(table => ({heads: all("thead th", table).map(one => [one.scope, one.textContent]),
    rows: rows(table), row_heads: all("tbody th[scope=row]", table).length})),
  figures: all("figure:not(.crop)").map(one => [one.querySelector("figcaption").textContent,
    one.querySelector("svg[role=img]").getAttribute("aria-label"), one.querySelectorAll("svg path").length > 0]),
  crops: all("figure.crop img").map(one => [one.alt, one.src]),
  images: all("img").length, scripts: all("script").length,
  dangling: all("a").filter(one => !document.getElementById(one.hash.slice(1))).map(one => one.href),
  stroke: curve && getComputedStyle(curve).stroke,
};
if (range) {
  range.value = 25;
  range.dispatchEvent(new Event("input"));
  shown.cut = range.closest(".gallery").style.getPropertyValue("--cut");
}
shown.orders = all("table").map(table => all("thead button", table).map(button => [0, 1].map(() => {
  button.click();
  return [button.parentNode.getAttribute("aria-sort"), rows(table).map(row => row[0])];
})));
shown.said = said;
const result = document.createElement("script");
result.type = "application/json";
result.id = "shown";
result.textContent = JSON.stringify(shown).replaceAll("<", "\\\\u003c");
document.body.append(result);
}</script></body>"""


def open_page(chromium, page, dark):
    with open(page, encoding="utf-8") as file:
        text = file.read()
    probed = page + ".probe.html"
    with open(probed, "w", encoding="utf-8") as file:
        file.write(text.replace("<head>", "<head>" + WATCH, 1).replace("</body>", PROBE, 1))
    done = subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--timeout=20000", "--dump-dom",
                           "--proxy-server=localhost:1", "--user-data-dir=%s.profile" % page,
                           "--blink-settings=preferredColorScheme=%d" % (not dark), "file://" + os.path.abspath(probed)],
                          capture_output=True, text=True, check=True, timeout=120)
    found = re.search(r'<script type="application/json" id="shown">(.*?)</script>', done.stdout, re.S)
    assert found, "the page's script did not end: %s" % done.stderr[-2000:]
    return json.loads(found[1])


def text_of(cell):
    text, detail, badge = cell["text"], cell.get("detail"), cell.get("badge")
    return text + (" " * bool(text) + detail if detail else "") + (" " + badge["text"] if badge else "")


def check_order(table, column, way, heads):
    """Falling or rising numbers, and what has none last. Rows of one name, of two networks, can't be told apart here."""
    cells = {text_of(row["cells"][0]): row["cells"][column].get("value") for row in table["rows"]}
    values = [cells[head] for head in heads]
    numbers = [value for value in values if value is not None]
    if len(cells) == len(heads):
        assert numbers == sorted(numbers, reverse=way == "descending"), (column, way, values)
        assert values[:len(numbers)] == numbers, (column, way, values)


def check(shown, document):
    blocks = [block for section in document["sections"] for block in page_text.blocks_of(section)]
    of = lambda kind: [block for block in blocks if block["kind"] == kind]
    assert not shown["said"], shown["said"]
    assert shown["title"] and shown["h1"] == [document["title"]] and shown["lead"] == [document.get("lead", "")]
    assert shown["sections"] == [[one["id"], one.get("heading")] for one in document["sections"]], shown["sections"]
    wanted = [page_text.inline(block["text"]) for block in blocks if "text" in block]
    wanted += [card["text"] for block in of("cards") for card in block["cards"]]
    assert sorted(shown["texts"]) == sorted(wanted), set(wanted) ^ set(shown["texts"])
    assert shown["items"] == [item for block in of("list") for item in block["items"]]
    images = [image for block in of("gallery") for image in block.get("images", [])]
    wanted = [block["summary"] for block in of("fold")] + ["%s %s" % (one["title"], one["key"]) for one in images]
    assert sorted(shown["summaries"]) == sorted(wanted), shown["summaries"]
    tables = of("table")
    assert len(shown["tables"]) == len(tables)
    for have, table, orders in zip(shown["tables"], tables, shown["orders"]):
        assert have["heads"] == [["col", one["label"]] for one in table["columns"]], have["heads"]
        assert have["rows"] == [[text_of(cell) for cell in row["cells"]] for row in table["rows"]], have["rows"]
        assert have["row_heads"] == len(table["rows"])
        sortable = "shades" not in table and len(table["rows"]) > 2
        assert len(orders) == (len(table["columns"]) if sortable else 0)
        for column, ways in enumerate(orders):
            assert {way for way, _ in ways} == {"ascending", "descending"}, ways
            for way, heads in ways:
                check_order(table, column, way, heads)
    figures = [figure for block in of("figures") for figure in block["figures"]]
    wanted = [[" · ".join(one[key] for key in ("title", "detail") if key in one), one["title"], True] for one in figures]
    assert shown["figures"] == wanted, shown["figures"]
    assert shown["crops"] == [[crop["name"], crop["png"]] for one in images for crop in one.get("variants", [])]
    assert shown["images"] == len(shown["crops"]) and shown["scripts"] == 4, (shown["images"], shown["scripts"])
    assert not shown["dangling"], shown["dangling"]
    assert ("cut" in shown) == bool(images) and shown.get("cut", "25%") == "25%", shown["cut"]
    return figures


def main():
    chromium, page = sys.argv[1:]
    document = page_text.document_of(page)
    for dark in (False, True):
        shown = open_page(chromium, page, dark)
        figures = check(shown, document)
        if any("jpeg" in figure["svg"] for figure in figures) and shown["stroke"]:
            assert shown["stroke"] == ("rgb(110, 160, 245)" if dark else "rgb(47, 111, 222)"), shown["stroke"]
    print("%d sections, %d tables, %d figures, %d crops" % tuple(
        len(shown[key]) for key in ("sections", "tables", "figures", "crops")))


if __name__ == "__main__":
    main()
