# SPDX-License-Identifier: BSD-2-Clause
"""A contact sheet of a dataset, for notebooks: small pictures from all of it, as HTML."""
from __future__ import annotations

import base64
import html as markup
import struct
import zlib
from typing import Any

import dl2


def _png(pixels: bytes, width: int, height: int) -> bytes:
    """RGB pixels as a PNG file."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    row = 3 * width
    lines = b"".join(b"\0" + pixels[y * row:(y + 1) * row] for y in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b""))


def html(shown: Any, count: int = 24, side: int = 96) -> str:
    """Of a dataset or a loader: its repr, and of its samples `count` at most, evenly spaced, each with
    the name of its class; and why some of them cannot be read."""
    title = f"<p>{markup.escape(repr(shown))}</p>"
    dataset = shown if isinstance(shown, dl2.Dataset) else shown.dataset
    try:
        size, classes, figures = len(dataset), dataset.classes, []
    except (TypeError, ValueError):  # it is closed
        return title
    if dataset.kind == "volume":  # what would be shown of one?
        return title
    frames = {"frames": 1} if dataset.kind in ("clip", "video") else {}
    with dl2.Loader(dataset, 1, side, train=False, workers=1, depth=2, **frames) as loader:
        for n in range(min(count, size)):
            loader.start_epoch(0, step=n * size // min(count, size))
            batch = next(iter(loader))
            sample = dataset.sample(batch.indices[0])
            label = classes[sample.label] if 0 <= sample.label < len(classes) else ""
            if batch.labels[0] != sample.label:
                label += " (cannot be read)"
            picture = base64.b64encode(_png(bytes(batch.images), side, side)).decode()
            del batch
            figures.append(
                f'<figure style="display:inline-block;margin:2px;width:{side}px">'
                f'<img width="{side}" height="{side}" title="{markup.escape(sample.key)}" '
                f'src="data:image/png;base64,{picture}">'
                f'<figcaption style="overflow:hidden;white-space:nowrap">{markup.escape(label)}'
                "</figcaption></figure>")
        bad = "".join(f"<p>{markup.escape(reason)}</p>" for reason in loader.bad[:3])
    return title + "".join(figures) + bad
