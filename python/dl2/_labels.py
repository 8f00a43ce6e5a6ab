# SPDX-License-Identifier: BSD-2-Clause
"""Targets of one's own for the samples of a dataset, from an array or a CSV file."""
from __future__ import annotations

import csv
import math
import os
from typing import Any, Dict, List, Optional

import torch

import dl2


def _numbers(cells: List[str]) -> Optional[List[float]]:
    """None where one of them is no finite number."""
    try:
        numbers = [float(cell) for cell in cells]
    except ValueError:
        return None
    return numbers if all(map(math.isfinite, numbers)) else None


def _names(dataset: dl2.Dataset) -> Dict[str, List[int]]:
    """The numbers of the samples by what a file may call them: key, name, and the last part of these;
    none where that is several images. `select` may have chosen one several times."""
    names: Dict[str, List[int]] = {}
    lasts: Dict[str, List[int]] = {}
    paths: List[str] = []
    for number in range(len(dataset)):
        sample = dataset.sample(number)
        paths.append(sample.path)
        for name in {sample.key, sample.name}:
            for known, of in (names, name), (lasts, name.rsplit("/", 1)[-1]):
                others = known.setdefault(of, [number])
                if others and paths[others[0]] != sample.path:
                    others.clear()
                elif others and others[-1] != number:
                    others.append(number)
    return {**lasts, **names}


def _rows(path: str, dataset: dl2.Dataset) -> List[List[float]]:
    """The numbers of each sample. Lines of samples that the dataset lacks may be those of another split."""
    names, columns = _names(dataset), 0
    rows: List[Optional[List[float]]] = [None] * len(dataset)
    with open(path, newline="", encoding="utf-8-sig", errors="surrogateescape") as file:
        for number, cells in enumerate(csv.reader(file), 1):
            if not cells:
                continue
            place, values = f"{path}:{number}", _numbers(cells[1:])
            first, columns = not columns, columns or len(cells)
            if len(cells) != columns or columns < 2:
                raise ValueError(f"{place}: {len(cells)} fields; each line is NAME,NUMBER,... with as many as the first")
            if values is None:
                if first:  # the columns' names
                    continue
                raise ValueError(f"{place}: what stands behind {cells[0]!r} is not numbers alone")
            samples = names.get(cells[0], names.get(cells[0].strip().removeprefix("./")))
            if samples is None:
                continue
            if not samples:
                raise ValueError(f"{place}: several samples are called {cells[0]!r}: use keys, such as "
                                 f"{dataset.keys[0]!r}")
            if rows[samples[0]] is not None:
                raise ValueError(f"{place}: {cells[0]!r} comes twice")
            for sample in samples:
                rows[sample] = values
    missing = [number for number, row in enumerate(rows) if row is None]
    if missing:
        raise ValueError(f"{path}: no line for {len(missing)} of {len(rows)} samples, such as "
                         f"{dataset.keys[missing[0]]!r}")
    return [row for row in rows if row is not None]


def tensor(labels: Any, dataset: dl2.Dataset) -> torch.Tensor:
    """A number or a row for each sample: int64 [n] of whole numbers, else float32 [n] or [n, columns]."""
    if isinstance(labels, (str, os.PathLike)):
        rows = torch.tensor(_rows(os.fspath(labels), dataset), dtype=torch.float64)
        out = rows[:, 0] if rows.shape[1] == 1 else rows
        whole = out.dim() == 1 and bool((out == out.round()).all())
    else:
        out = torch.as_tensor(labels).detach().cpu()
        whole = out.dim() == 1 and not out.is_floating_point()
    if out.dim() not in (1, 2) or len(out) != len(dataset):
        raise ValueError(f"labels has the shape {tuple(out.shape)}: it needs a number, or a row, for each of "
                         f"{len(dataset)} samples")
    return out.to(torch.int64 if whole else torch.float32, copy=True)
