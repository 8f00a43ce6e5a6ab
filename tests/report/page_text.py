# SPDX-License-Identifier: BSD-2-Clause
"""What a page of dl2-report shows, as text: a line for each block, row and item; of a row "| cell | cell |".

    page_text.py PAGE [SCHEMA]

With a schema the page's document is checked by it, and so is report.json beside it, which has to be the same.
"""
import json
import os
import re
import sys

BEGIN, END = '<script type="application/json" id="document">', "</script>"


def document_of(page):
    with open(page, encoding="utf-8") as file:
        text = file.read()
    before, _, rest = text.partition(BEGIN)
    inside, _, after = rest.partition(END)
    assert "<" not in inside and BEGIN not in after, "the document has markup"
    links = re.findall(r"""(?:src|href)=["'][^"']*|url\([^)$]+|\bimport\b|https?:""", before + after)
    assert links == ["url(#heat"], "the page has links to elsewhere: %s" % links
    return json.loads(inside)


def inline(text):
    return "".join(part if isinstance(part, str) else part.get("text", next(iter(part.values()))) for part in text)


def cell(of):
    marks = ["own"] * ("own" in of) + ["%+.2f" % shade for shade in [of.get("shade")] if shade is not None]
    parts = [of["text"], of.get("detail", ""), of.get("badge", {}).get("text", ""), marks and "{%s}" % " ".join(marks)]
    return " ".join(part.replace("\n", " ") for part in parts if part)


def row(cells):
    return "| " + " | ".join(cells) + " |"


def lines_of(block):
    kind = block["kind"]
    if "text" in block:
        yield inline(block["text"])
    elif kind == "table":
        yield row(column["label"].replace("\n", " ") for column in block["columns"])
        for one in block["rows"]:
            assert len(one["cells"]) == len(block["columns"]), one
            yield row(map(cell, one["cells"]))
    elif kind == "list":
        yield from ("- " + item for item in block["items"])
    elif kind == "figures":
        for figure in block["figures"]:
            yield "[%s]" % " · ".join(figure[key] for key in ("title", "detail") if key in figure)
    elif kind == "cards":
        for card in block["cards"]:
            yield " ".join([card["title"], card.get("badge", {}).get("text", ""), card["name"], card.get("gain", "")])
            yield card["text"]
    elif kind == "gallery":
        for image in block.get("images", []):
            yield "%s %s" % (image["title"], image["key"])
            for crop in image.get("variants", []):
                yield "[%s]" % " ".join(crop[key] for key in ("name", "size", "score") if key in crop)
    elif kind == "fold":
        yield "> " + block["summary"]
        yield from all_lines(block)
    elif kind == "columns":
        for column in block["columns"]:
            yield from all_lines(column)
    else:
        raise ValueError("a block of kind " + kind)


def all_lines(parent):
    for block in parent.get("blocks", []):
        yield from lines_of(block)


def blocks_of(parent):
    """All blocks, with those in folds and columns."""
    for block in parent.get("blocks", []):
        yield block
        for inner in [block, *block["columns"]] if block["kind"] == "columns" else [block]:
            yield from blocks_of(inner)


def check(document, page, schema):
    try:
        import jsonschema
        with open(schema, encoding="utf-8") as file:
            jsonschema.validate(document, json.load(file))
    except ImportError:
        print("the schema is not checked: Python has no module jsonschema", file=sys.stderr)
    with open(os.path.join(os.path.dirname(page), "report.json"), encoding="utf-8") as file:
        assert json.load(file) == document, "report.json is not the page's document"
    blocks = [block for section in document["sections"] for block in blocks_of(section)]
    ids = [section["id"] for section in document["sections"]] + [block["id"] for block in blocks if "id" in block]
    links = [part["link"] for block in blocks for part in block.get("text", []) if isinstance(part, dict) and "link" in part]
    pictures = "".join(figure["svg"] for block in blocks if block["kind"] == "figures" for figure in block["figures"])
    ids += re.findall(r""" id=["']([^"']*)""", pictures)
    assert len(ids) == len(set(ids)), "ids twice: %s" % {one for one in ids if ids.count(one) > 1}
    assert set(links) <= set(ids), "links to nothing: %s" % (set(links) - set(ids))


def main():
    page = sys.argv[1]
    document = document_of(page)
    if len(sys.argv) > 2:
        check(document, page, sys.argv[2])
    print(document["title"], document.get("lead", ""), sep="\n")
    for section in document["sections"]:
        if "heading" in section:
            print("\n## " + section["heading"])
        print("\n".join(all_lines(section)))


if __name__ == "__main__":
    main()
