# SPDX-License-Identifier: BSD-2-Clause
"""A training script of your own in a study of dl2 (dl2-study run --train-with; docs/your-network.md).

    import dl2.study

    run = dl2.study.run(data="photos", val="photos", seed=1, epochs=10, out="runs/1")
    ...                                         # trains on run.data for run.epochs, from run.seed
    dl2.study.outcomes(paths, right)            # of each validation image: its path, whether it is right
    dl2.study.finish("top1", sum(right) / len(right))

In a study run.data, run.seed and the like are the study's; otherwise they are what the script gave,
and nothing is written unless it gave `out`. finish() writes result.json, which the study reads.

All of it but sensitivity(), which needs PyTorch, needs only Python's standard library (3.9 or later).
Where the package dl2 cannot be imported, a copy of this file beside the script works, too:
`import study`.
"""
from __future__ import annotations

import csv
import json
import math
import os
import sys
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple, Union

__all__ = ["Run", "run", "epoch", "outcomes", "finish", "resample", "resamples", "sensitivity"]

RESULT = "result.json"
_UNITS = {"fraction": 1.0, "percent": 100.0}  # and the upper end of each; any other text has no range
_WRONG_UNITS = {"%": "percent", "percents": "percent", "percentage": "percent", "fractions": "fraction", "ratio": "fraction"}
_TEXTS = ("data", "val", "original", "variant", "arch", "out", "device")
_NUMBERS = {"seed": 0, "threads": 1, "epochs": 0, "batch": 1, "attempt": 1}  # and the least of each
_IMAGES = (".jpg", ".jpeg", ".png", ".ppm", ".pgm", ".webp", ".avif", ".jp2", ".jxl", ".tif", ".tiff", ".bmp", ".gif", ".dl2x")
_LEAST_RESAMPLES, _MOST_RESAMPLES = 100, 100_000
_MOST = 1e12  # of a value in a unit without a range
_ODD = set("<>&\"'\\|%{}^`$;")  # what names and units do not have

Outcomes = Dict[str, float]


def _number(value: Any, what: str) -> float:
    """A finite number, of Python's, NumPy's or PyTorch's."""
    if isinstance(value, (str, bytes)) or value is None:
        raise TypeError(f"{what} is {value!r}, which is not a number")
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} is a {type(value).__name__}, not a number") from error
    if not math.isfinite(number):
        raise ValueError(f"{what} is {number}")
    return number


def _in_unit(value: Any, unit: str, what: str) -> float:
    number = _number(value, what)
    most = _UNITS.get(unit, math.inf)
    if abs(number) > _MOST:
        raise ValueError(f"{what} is {number:g}, which is beyond {_MOST:g}")
    if most < math.inf and not 0 <= number <= most:
        hint = " (unit='percent' is for 0 to 100)" if unit == "fraction" and 1 < number <= 100 else ""
        raise ValueError(f"{what} is {number:g}, and a {unit} is 0 to {most:g}{hint}")
    return number


def _plain(text: str, what: str) -> None:
    """Names and units go into pages and plots as they are."""
    if len(text.encode()) > 64 or any(c in _ODD or c < " " or c == "\x7f" for c in text):
        raise ValueError(f"{what} is {text!r}: it has more than 64 bytes, a control character, or one of {''.join(sorted(_ODD))}")


def _list(values: Any) -> List[Any]:
    """Any iterable, array or tensor, on any device."""
    return list(values.tolist() if hasattr(values, "tolist") else values)


def _write(path: str, text: str) -> None:
    """A whole file or none, whenever the process ends."""
    new = path + ".new"
    with open(new, "w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)


def _size(text: str) -> Union[int, Tuple[int, ...]]:
    sides = tuple(int(side) for side in text.split("x"))
    return sides[0] if len(sides) == 1 else sides


class Run:
    """One training: where it reads and writes, and what it has found so far.

    data, val     paths of the training and of the validation data, of one variant
    original      path of the original dataset, to validate on it, too
    variant       name of the variant, "raw" for the original
    arch          name of the network
    seed          whole number; trainings of one study differ by it alone
    out           folder for results, which is there; None: nothing is written
    attempt       1, or more where `out` has files of an earlier attempt that was stopped
    epochs, batch, threads   whole numbers
    image_size    pixels of a square's side, or a tuple of sides
    device        "cpu", "cuda", ...

    Each is the study's, from the variable DL2_SEED and so on, else what the script gave, else None
    (attempt: 1). Not safe for several threads at once.
    """

    def __init__(self, **defaults: Any) -> None:
        known = (*_TEXTS, *_NUMBERS, "image_size")
        for name in defaults:
            if name not in known:
                raise TypeError(f"a run has no {name!r}: it has {', '.join(known)}")
        self.inside = "DL2_OUT" in os.environ
        for name in _TEXTS:
            setattr(self, name, os.environ.get("DL2_" + name.upper(), defaults.get(name)))
        if self.device == "auto":  # the study leaves it to the script
            self.device = defaults.get("device")
        for name, least in _NUMBERS.items():
            setattr(self, name, self._whole(name, least, defaults.get(name, 1 if name == "attempt" else None)))
        self.image_size = defaults.get("image_size")
        if "DL2_IMAGE_SIZE" in os.environ:
            try:
                self.image_size = _size(os.environ["DL2_IMAGE_SIZE"])
            except ValueError:
                raise ValueError(f"DL2_IMAGE_SIZE is {os.environ['DL2_IMAGE_SIZE']!r}, not 224 or 64x128x128") from None
        roots = [os.fsdecode(root) for root in (self.val, self.original, self.data) if root is not None]
        self._roots = [os.path.join(resolve(root), "") for root in roots for resolve in (os.path.abspath, os.path.realpath)]
        self._leads = os.environ.get("RANK", "0") in ("", "0")  # of several processes (torchrun) the first one writes
        self._outcomes: Dict[bool, Outcomes] = {}
        self._finished = False

    @staticmethod
    def _whole(name: str, least: int, default: Any) -> Any:
        variable = "DL2_" + name.upper()
        if variable not in os.environ:
            return default
        try:
            number = int(os.environ[variable])
        except ValueError:
            number = least - 1
        if number < least:
            raise ValueError(f"{variable} is {os.environ[variable]!r}, not a whole number from {least} on")
        return number

    @property
    def resumed(self) -> bool:
        """Whether `out` has files of an earlier attempt."""
        return self.attempt > 1

    def key(self, path: Any) -> str:
        """What an image is called in every variant: its path from the dataset's folder on, without
        an image's extension; anything else as text."""
        text = os.fsdecode(path) if isinstance(path, (str, bytes, os.PathLike)) else str(path)
        whole = os.path.abspath(text)
        for root in self._roots:
            if whole.startswith(root):
                text = whole[len(root):]
                break
        stem, extension = os.path.splitext(text)
        return stem if extension.lower() in _IMAGES else text

    # ---- Epochs

    def _epochs_file(self) -> str:
        return os.path.join(self.out, "epochs.jsonl")

    def _epochs(self) -> List[Dict[str, Any]]:
        """Those that were logged, also by an earlier attempt."""
        if self.out is None or not os.path.exists(self._epochs_file()):
            return []
        with open(self._epochs_file(), encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def epoch(self, number: int, value: Any = None, *, seconds: Any = None, images: Any = None, **more: Any) -> None:
        """Logs epoch `number`: the metric after it, the seconds that training took, the images that it
        trained on, and further numbers by name, as far as they are given. All are in OUT/epochs.jsonl; the
        first three also in the result, if each epoch has its value. Epochs from `number` on that an
        earlier attempt logged are dropped."""
        entry: Dict[str, Any] = {"epoch": int(number)}
        for name, given in {"value": value, "seconds": seconds, "images": images, **more}.items():
            if given is not None:
                entry[name] = _number(given, f"{name} of epoch {number}")
        for name in ("seconds", "images"):
            if entry.get(name, 0) < 0:
                raise ValueError(f"{name} of epoch {number} is {entry[name]:g}")
        if images is not None:
            entry["images"] = int(entry["images"])
        if self.out is not None and self._leads:
            os.makedirs(self.out, exist_ok=True)
            lines = [known for known in self._epochs() if known["epoch"] < entry["epoch"]] + [entry]
            _write(self._epochs_file(), "".join(json.dumps(line) + "\n" for line in lines))

    # ---- Results

    def outcomes(self, keys: Iterable[Any], values: Iterable[Any], *, original: bool = False) -> None:
        """A number for each validation image, whose mean is the metric, in its unit: whether it was
        right, its IoU, its loss. They replace those of an earlier call, such as after an epoch before.

        keys      of each image its path or another name, the same for every variant and seed
        values    as many numbers; True and False are 1 and 0
        original  they are of the original's validation images
        """
        names, numbers = [self.key(key) for key in _list(keys)], _list(values)
        if len(names) != len(numbers):
            raise ValueError(f"{len(names)} keys and {len(numbers)} values: outcomes need one of each for each validation image")
        if not names:
            raise ValueError("no outcomes: the validation data has no image")
        found: Outcomes = {}
        for name, number in zip(names, numbers):
            if name in found:
                raise ValueError(f"two outcomes have the key {name!r}: each validation image needs a key of its own")
            found[name] = _number(number, f"the outcome of {name!r}")
        self._outcomes[original] = found

    def _measured(self, value: Any, unit: str, given: Optional[Sequence[Any]], original: bool) -> Dict[str, Any]:
        """The members of a result for one validation set. Checks all that the study would refuse."""
        found = self._outcomes.get(original)
        what = "the value on the original" if original else "the value"
        if value is None:
            if found is None:
                raise TypeError(f"{what} is missing: give it, or outcomes, whose mean it is")
            value = math.fsum(found.values()) / len(found)
        members: Dict[str, Any] = {"value": _in_unit(value, unit, what)}
        if found is not None:
            for name, number in found.items():
                _in_unit(number, unit, f"the outcome of {name!r}")
            mean = math.fsum(found.values()) / len(found)
            if abs(mean - members["value"]) > 1e-4 * max(abs(mean), abs(members["value"]), _UNITS.get(unit, 1) / 100):
                hint = ", and in percent an image is 0 or 100" if unit == "percent" and max(found.values()) <= 1 else ""
                raise ValueError(f"{what} is {members['value']:g}, and the mean of its {len(found)} outcomes {mean:g}: "
                                 f"outcomes are numbers whose mean is the metric{hint}")
            members["outcomes"] = "outcomes-original.csv" if original else "outcomes.csv"
        if given is not None:
            numbers = [_in_unit(number, unit, f"resample {b} of {what}") for b, number in enumerate(_list(given))]
            if not _LEAST_RESAMPLES <= len(numbers) <= _MOST_RESAMPLES:
                raise ValueError(f"{len(numbers)} resamples: {_LEAST_RESAMPLES} to {_MOST_RESAMPLES} are needed")
            members["resamples"] = numbers
        return members

    def finish(self, metric: str, value: Any = None, *, unit: str = "fraction", higher_is_better: bool = True,
               resamples: Optional[Sequence[Any]] = None, original: Any = None,
               original_resamples: Optional[Sequence[Any]] = None,
               settings: Optional[Dict[str, Any]] = None) -> Dict[str, Any]:
        """Ends the run: writes OUT/result.json (dl2-result/1), and outcomes beside it, at once or not at all.

        metric             its name, such as "top1" or "mAP50-95"
        value              on the validation data; None: the mean of the outcomes
        unit               "fraction" (0 to 1), "percent" (0 to 100), or another text such as "nats" or ""
        resamples          the metric on resample 0, 1, ... of the validation images, from resamples()
        original           the value on the original's validation images; with outcomes(...,
                           original=True) it may be left out
        settings           compared across the study: trainings whose settings differ are no pair

        Returns what result.json has. Raises TypeError or ValueError for what a study would refuse.
        """
        if self._finished:
            raise RuntimeError("this run has finished already: finish() is called once, at the end")
        if not isinstance(metric, str) or not metric.strip():
            raise TypeError(f"metric is {metric!r}, not a name such as 'top1'")
        if not isinstance(unit, str):
            raise TypeError(f"unit is {unit!r}, not 'fraction', 'percent' or another text")
        if unit.lower() not in _UNITS and unit.lower() in _WRONG_UNITS or unit.lower() in _UNITS and unit not in _UNITS:
            raise ValueError(f"unit is {unit!r}: write {_WRONG_UNITS.get(unit.lower(), unit.lower())!r}")
        _plain(metric, "metric")
        _plain(unit, "unit")
        result: Dict[str, Any] = {"schema": "dl2-result/1", "metric": metric,
                                  **self._measured(value, unit, resamples, False),
                                  "unit": unit, "higher_is_better": bool(higher_is_better)}
        if original is not None or True in self._outcomes:
            result["original"] = self._measured(original, unit, original_resamples, True)
            counts = [len(one["resamples"]) for one in (result, result["original"]) if "resamples" in one]
            if len(set(counts)) > 1:
                raise ValueError(f"{counts[0]} resamples of the value and {counts[1]} on the original: both need as many")
        elif original_resamples is not None:
            raise TypeError("original_resamples need original, the value on the original")
        if settings is not None:
            result["settings"] = dict(settings)
        epochs = self._epochs()
        for known in epochs:
            if "value" in known:
                _in_unit(known["value"], unit, f"the value of epoch {known['epoch']}")
        if epochs and all("value" in known for known in epochs):
            result["epochs"] = [{name: known[name] for name in ("value", "seconds", "images") if name in known} for known in epochs]
        try:
            text = json.dumps(result, indent=1, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise TypeError(f"settings are not JSON: {error}") from error
        if self.out is not None and self._leads:
            self._save(text + "\n", result)
        self._finished = True
        return result

    def _save(self, text: str, result: Dict[str, Any]) -> None:
        os.makedirs(self.out, exist_ok=True)
        for original, members in ((False, result), (True, result.get("original", {}))):
            if "outcomes" in members:
                _write(os.path.join(self.out, members["outcomes"]), _csv(self._outcomes[original]))
        _write(os.path.join(self.out, RESULT), text)


def _csv(rows: Outcomes) -> str:
    class Lines(List[str]):
        write = List.append
    lines: Any = Lines()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(("key", "value"))
    writer.writerows((name, repr(number)) for name, number in rows.items())
    return "".join(lines)


_current: Optional[Run] = None


def run(**defaults: Any) -> Run:
    """The run of this process, made by the first call. The script's own settings are for use outside
    a study: run(data="photos", seed=1, out="runs/1")."""
    global _current
    if _current is None:
        _current = Run(**defaults)
    elif defaults:
        raise RuntimeError("this process has a run already: give its settings with the first call of dl2.study")
    return _current


def epoch(number: int, value: Any = None, **more: Any) -> None:
    """run().epoch()"""
    run().epoch(number, value, **more)


def outcomes(keys: Iterable[Any], values: Iterable[Any], *, original: bool = False) -> None:
    """run().outcomes()"""
    run().outcomes(keys, values, original=original)


def finish(metric: str, value: Any = None, **members: Any) -> Dict[str, Any]:
    """run().finish()"""
    return run().finish(metric, value, **members)


# ---- Resamples

_WORD = (1 << 64) - 1


def _mix(x: int) -> int:
    """SplitMix64 of x."""
    x = (x + 0x9E3779B97F4A7C15) & _WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _WORD
    return x ^ (x >> 31)


def resample(b: int, n: int) -> List[int]:
    """Resample b of n images, sorted by key: n of their numbers, 0 to n - 1, drawn with replacement.
    The same for every variant and seed (docs/formats/study.md)."""
    if b < 0 or not 0 < n < 1 << 32:
        raise ValueError(f"resample {b} of {n} images: b is 0 or more, and there is an image")
    base = _mix(b + 1)
    return [((_mix((base + i) & _WORD) >> 32) * n) >> 32 for i in range(n)]


def resamples(metric: Callable[[List[int]], Any], keys: Iterable[Any], count: int = 200) -> List[float]:
    """metric() on resample 0, 1, ..., count - 1 of the validation images, for finish(): of metrics that
    are no mean over images, such as mAP, F1 or AUC.

    metric  called with positions in `keys`, some of them several times; returns a number
    keys    of each image its path or another name, the same for every variant and seed
    """
    names = [run().key(key) for key in _list(keys)]
    if len(set(names)) != len(names):
        raise ValueError("two validation images have the same key: each needs one of its own")
    order = sorted(range(len(names)), key=names.__getitem__)
    return [_number(metric([order[i] for i in resample(b, len(names))]), f"resample {b}") for b in range(count)]


# ---- Sensitivity

_LAGS = 16
_STEPS = ((1.0, 1.0, 1.0), (0.0, -0.344136, 1.772), (1.402, -0.714136, 0.0))  # RGB of a step of Y, Cb and Cr (JFIF 1.02)


def _draw_loss(torch: Any, output: Any, generator: Any) -> Any:
    """Cross-entropy, as a sum, to labels that are drawn from the network's own predictions."""
    scores = getattr(output, "logits", output)
    if not torch.is_tensor(scores) or scores.dim() < 2 or scores.shape[1] < 2:
        raise TypeError("the network's output is no tensor of scores [n, classes, ...]: give loss, a function of "
                        "(model, images, targets)")
    scores = scores.movedim(1, -1).reshape(-1, scores.shape[1]).float()
    drawn = torch.multinomial(scores.detach().softmax(1).cpu(), 1, generator=generator)[:, 0]
    return torch.nn.functional.cross_entropy(scores, drawn.to(scores.device), reduction="sum")


def _covariance(torch: Any, planes: Any) -> Any:
    """Sums over images of planes [n, p, h, w]: [p, L + 1, 2 L + 1], products of two pixels at each shift."""
    height, width = planes.shape[2] + _LAGS, planes.shape[3] + 2 * _LAGS  # so that nothing wraps around
    power = torch.fft.rfft2(planes.double(), s=(height, width)).abs() ** 2
    sums = torch.fft.irfft2(power.sum(0), s=(height, width))
    return torch.cat((sums[:, :_LAGS + 1, width - _LAGS:], sums[:, :_LAGS + 1, :_LAGS + 1]), 2)


def _gradient(torch: Any, model: Any, images: Any, targets: Any, loss: Any, generator: Any) -> Any:
    images = images.detach().clone().requires_grad_(True)
    with torch.enable_grad():
        total = _draw_loss(torch, model(images), generator) if loss is None else loss(model, images, targets)
        if not torch.is_tensor(total) or not total.requires_grad:
            raise TypeError("the loss does not depend on the images: is the network differentiable, and is it a tensor?")
        gradient, = torch.autograd.grad(total.sum(), images)
    if not bool(torch.isfinite(gradient).all()):
        raise ValueError("the gradient with respect to the images is not finite")
    return gradient.detach()


def sensitivity(model: Any, images: Iterable[Any], out: Union[str, "os.PathLike[str]"], *,
                std: Optional[Sequence[float]] = None, loss: Optional[Callable[[Any, Any, Any], Any]] = None,
                limit: int = 1024, seed: int = 1, arch: Optional[str] = None, weights: str = "",
                data: str = "") -> Dict[str, Any]:
    """Writes how much the loss of a PyTorch network depends on its input (dl2-sensitivity/1), for
    `dl2-transcode fit-tables --sensitivity OUT`.

    model    a module or a function of float images [n, 3, h, w], or [n, 1, h, w] of gray; any
             network that PyTorch can differentiate
    images   batches as the network is trained on them: tensors, or (tensor, targets), such as a
             dl2.torch.Loader or a DataLoader; all of one size
    out      the file
    std      each channel's, of values from 0 to 1: images are (value / 255 - mean) / std. Of a
             dl2.torch.Loader it is known
    loss     a function of (model, images, targets) that returns the sum of the images' losses, or
             one for each image. None: cross-entropy of scores [n, classes] or [n, classes, h, w], to
             labels that are drawn from the network's own predictions
    limit    images that count, at most
    seed     of the labels that are drawn
    arch, weights, data   texts that the file and the tables fitted to it carry

    Without `loss` the network is in evaluation mode meanwhile, else in its own. Neither its weights nor
    their gradients change. Returns what the file has.
    """
    import torch
    std = getattr(images, "_std", None) if std is None else std  # of a dl2.torch.Loader
    if std is None:
        raise TypeError("std is missing: the divisor of each channel that images were normalized with, of values from 0 to 1 "
                        "(ImageNet's is 0.229, 0.224, 0.225)")
    deviations = [_number(value, "std") for value in _list(std)]
    module = model if isinstance(model, torch.nn.Module) else None
    like = next(module.parameters(), None) if module is not None else None
    training = module is not None and loss is None and module.training
    generator = torch.Generator().manual_seed(seed)
    sums, shape, count = None, None, 0
    if training:
        module.eval()
    try:
        for batch in images:
            batch, targets = (batch[0], batch[1]) if isinstance(batch, (tuple, list)) else (batch, None)
            if not torch.is_tensor(batch) or batch.dim() != 4 or not batch.is_floating_point():
                raise TypeError("images are batches of float tensors [n, channels, height, width], or (tensor, targets)")
            if batch.shape[1] not in (1, 3) or batch.shape[1] != len(deviations) or min(deviations) <= 0:
                raise ValueError(f"images of {batch.shape[1]} channels, and std {deviations}: 1 or 3 channels need as many "
                                 "numbers above 0")
            if shape not in (None, batch.shape[1:]):
                raise ValueError(f"images of {tuple(batch.shape[1:])} after some of {tuple(shape)}: all need one size")
            shape, batch = batch.shape[1:], batch if like is None else batch.to(like.device, like.dtype)
            gradient = _gradient(torch, model, batch, targets, loss, generator)[:limit - count].double()
            gradient = gradient / (255 * torch.tensor(deviations, dtype=torch.float64, device=gradient.device)[:, None, None])
            steps = torch.tensor(_STEPS if shape[0] == 3 else [[1.0]], dtype=torch.float64, device=gradient.device)
            found = _covariance(torch, torch.einsum("pc,nchw->nphw", steps, gradient)).cpu()
            sums, count = found if sums is None else sums + found, count + len(gradient)
            if count >= limit:
                break
    finally:
        if training:
            module.train()
    if sums is None or not count:
        raise ValueError("no images: the sensitivity needs a batch at least")
    if not bool(sums[0, 0, _LAGS] > 0):
        raise ValueError("the gradient with respect to the images is 0 everywhere: the loss does not depend on them, or the "
                         "network is certain of each image")
    down = (shape[1] - torch.arange(_LAGS + 1)).clamp(min=0)
    across = (shape[2] - torch.arange(-_LAGS, _LAGS + 1).abs()).clamp(min=0)
    pairs = (count * down[:, None] * across[None]).double()
    means = torch.where(pairs > 0, sums / pairs.clamp(min=1), torch.zeros((), dtype=torch.float64))
    result = {"schema": "dl2-sensitivity/1", "arch": arch or (type(module).__name__ if module is not None else "network"),
              "weights": weights, "data": data, "input": [shape[1], shape[2]], "channels": shape[0], "images": count, "lags": _LAGS,
              "covariance": dict(zip(("luma", "cb", "cr"), means.tolist()))}
    _write(os.fspath(out), json.dumps(result) + "\n")
    return result
