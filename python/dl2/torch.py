# SPDX-License-Identifier: BSD-2-Clause
"""dl2 for PyTorch: batches as tensors that a network takes, and single images.

    from dl2.torch import Loader

    loader = Loader("photos", batch_size=256, image_size=224)
    for epoch in range(90):
        loader.set_epoch(epoch)
        for images, targets in loader:      # float32 [256, 3, 224, 224], int64 [256]
            ...

Loader is for training and validation. Dataset is a map-style dataset, for code that has transforms
of its own. This module needs PyTorch 1.13 or later (tried: 1.13 and 2.15); `import dl2` alone does not.
"""
from __future__ import annotations

import ctypes
import inspect
import math
import os
import sys
import warnings
import weakref
from multiprocessing import context, sharedctypes
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Union

import torch
from torch.utils import data
from torch.utils.dlpack import from_dlpack

import dl2
from dl2 import _labels, _mix, _sheet

__all__ = ["Dataset", "Loader", "IMAGENET_MEAN", "IMAGENET_STD"]

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)

Sidecars = Dict[str, Any]  # lists of bytes by extension, and "crop_boxes", "masks" and "indices", tensors
Batch = Union[Tuple[torch.Tensor, Any], Tuple[torch.Tensor, Any, Sidecars]]  # targets: a tensor, or dicts
Path = Union[str, "os.PathLike[str]", dl2.Dataset, Sequence[Union[str, "os.PathLike[str]", dl2.Dataset]]]

_DTYPES = {torch.uint8: "uint8", torch.float32: "float32", torch.float16: "float16",
           torch.bfloat16: "bfloat16"}
_LAYOUTS = ("NCHW", "NHWC", "channels_last")


def _dtype_of(dtype: Union[str, torch.dtype]) -> torch.dtype:
    for known, name in _DTYPES.items():
        if dtype in (known, name):
            return known
    raise ValueError(f"dtype is one of {', '.join(_DTYPES.values())}, not {dtype!r}")


_WHOLE_EPOCH = ("so that each process loads the whole epoch: make the loader after "
                "torch.distributed.init_process_group(), or give rank and world (0 and 1 for all of it)")


def _world() -> int:
    """torch.distributed's, 0 where it is not initialized."""
    distributed = torch.distributed
    return distributed.get_world_size() if distributed.is_available() and distributed.is_initialized() else 0


def _rank_and_world(rank: Optional[int], world: Optional[int]) -> Tuple[int, int]:
    """Those that were given, else torch.distributed's where it is initialized, else a process alone."""
    if (rank is None) != (world is None):
        raise ValueError("rank and world go together: give both or neither")
    if rank is not None and world is not None:
        return rank, world
    if _world():
        return torch.distributed.get_rank(), _world()
    several = os.environ.get("WORLD_SIZE", "")
    if several.isdigit() and int(several) > 1:
        warnings.warn(f"WORLD_SIZE is {several}, but torch.distributed is not initialized, {_WHOLE_EPOCH}",
                      RuntimeWarning, stacklevel=3)
    return 0, 1


def _seed(given: Optional[int], train: bool, world: int) -> int:
    """PyTorch's where none is given. The ranks share an epoch, so rank 0's is that of all."""
    if given is not None:
        return given
    seed = torch.initial_seed() % (1 << 64)
    if train and world > 1:
        if _world() != world:
            raise ValueError("rank and world are given, and torch.distributed is not what they are of: give seed, "
                             "too, the same in every process, since they share an epoch")
        seeds = [seed]
        torch.distributed.broadcast_object_list(seeds, src=0)
        seed = seeds[0]
    return seed


class _Notes:
    """Lines that a DataLoader's worker process writes, and the process that made the loader reads:
    memory that both see, which lasts longer than the worker."""

    SIZE = 1 << 18

    def __init__(self) -> None:
        self._text = sharedctypes.RawArray(ctypes.c_char, self.SIZE)
        self._end = sharedctypes.RawValue("Q", 0)
        self._left_out = sharedctypes.RawValue("Q", 0)

    def read(self) -> List[str]:
        lines = self._text[:self._end.value].decode("utf-8", "surrogateescape").split("\0")[:-1]
        left_out = self._left_out.value
        return lines + [f"... and {left_out} more"] if left_out else lines

    def add(self, lines: Sequence[str]) -> None:
        known = set(self.read())
        for line in dict.fromkeys(lines):
            encoded = line.encode("utf-8", "surrogateescape") + b"\0"
            end = self._end.value + len(encoded)
            if line in known:
                continue
            if end > self.SIZE:
                self._left_out.value += 1
                continue
            self._text[self._end.value:end] = encoded
            self._end.value = end  # last: who reads in between sees whole lines


def _refuse_divided_again(caller: Any, world: int) -> None:
    """accelerate's prepare() puts these around an IterableDataset's DataLoader."""
    if world > 1 and type(caller).__name__ in ("DataLoaderDispatcher", "IterableDatasetShard"):
        raise ValueError(f"accelerate would divide the batches of this loader once more, and each of {world} processes "
                         "would see a part of its own part: give prepare() the Loader itself, not a DataLoader of it")


def _pinned(size: int) -> Any:
    """Page-locked memory, which a graphics card copies from by itself; a buffer that keeps it."""
    tensor = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    buffer: Any = (ctypes.c_uint8 * size).from_address(tensor.data_ptr())
    buffer.tensor = tensor
    return buffer


def _convert(images: torch.Tensor, dtype: torch.dtype, layout: str, mean: Optional[torch.Tensor],
             std: Optional[torch.Tensor]) -> torch.Tensor:
    """uint8 NHWC to what was asked for, on the images' device: (value / 255 - mean) / std."""
    if mean is not None and std is not None and dtype != torch.uint8:
        images = images.to(torch.float32).sub_(255 * mean).div_(255 * std).to(dtype)
    if layout == "NHWC":
        return images
    images = _channels_second(images)
    return images.contiguous() if layout == "NCHW" else images


def _channels_second(images: torch.Tensor) -> torch.Tensor:
    """A view: [n, h, w, c] as [n, c, h, w], and of clips [n, t, h, w, c] as [n, c, t, h, w]."""
    return images.movedim(-1, 1)


def _boxes(batch: dl2.Batch) -> List[Dict[str, Any]]:
    """The targets of torchvision's detection networks: a dict of tensors for each image."""
    return [{name: from_dlpack(value.__dlpack__()) if isinstance(value, dl2.Array) else value
             for name, value in boxes.items()} for boxes in batch.boxes or ()]


def _sidecars(batch: dl2.Batch, indices: bool) -> Sidecars:
    sidecars: Sidecars = dict(batch.targets)
    if batch.masks is not None:
        sidecars["masks"] = from_dlpack(batch.masks.__dlpack__())
    if sidecars and batch.patches is not None:
        sidecars["patches"] = from_dlpack(batch.patches.__dlpack__())
    elif sidecars:
        sidecars["crop_boxes"] = from_dlpack(batch.crop_boxes.__dlpack__())
    if indices:
        sidecars["indices"] = from_dlpack(batch.indices.__dlpack__())
    return sidecars


_ELSEWHERE = {"batch": "here it is batch_size", "memory": "here it is pin_memory",
              "collate_fn": "batch_transform is a function of a batch",
              "transform": "augment names operations on each image, batch_transform is a function of a batch, and "
                           "dl2.torch.Dataset has transforms of your own"}


def _check_names(settings: Dict[str, Any]) -> None:
    """Names which option is meant by those that are none."""
    own = tuple(name for name in inspect.signature(Loader).parameters if name != "settings")
    for name in settings:
        if name in _ELSEWHERE:
            raise TypeError(f"Loader() has no argument {name!r}: {_ELSEWHERE[name]}")
        dl2.Loader._check_argument(name, own)


class _Sampler(data.Sampler):
    """What scripts ask of a DataLoader's sampler, for a loader, which draws its own order."""

    def __init__(self, owner: "Loader") -> None:
        self._owner = owner

    def set_epoch(self, epoch: int) -> None:
        self._owner.set_epoch(epoch)

    def __len__(self) -> int:
        return len(self._owner.dataset) // self._owner.loader.settings["world"]

    def __iter__(self) -> Iterator[int]:
        raise TypeError("a dl2.torch.Loader draws its own order: indices=True has the samples' numbers in its batches")


class Loader(data.IterableDataset):
    """Epochs of (images, targets), ready for a network.

    path         a folder, packed dataset or dl2.Dataset, as dl2.Loader takes it, or a list of these,
                 which are loaded as one: every sample once an epoch, or by `shares`, such as (0.7, 0.3)
    batch_size   images in a batch; the last of an epoch may hold fewer, unless drop_last
    image_size   pixels of a square's side, or (height, width)
    train        shuffle, crop at random and flip; else resize and crop the middle, or with
                 val_crop="squash" resize the whole image
    dtype        torch.float32, torch.float16, torch.bfloat16 or torch.uint8, or its name
    layout       "NCHW"; "NHWC"; or "channels_last", the shape of the first in the memory order of
                 the second, as tensor.to(memory_format=torch.channels_last) makes it
    mean, std    images are (value / 255 - mean) / std, ImageNet's by default; None: not normalized,
                 0 to 1. torch.uint8 is 0 to 255
    device       "cuda": batches are copied to the card on a stream of their own, one batch ahead,
                 and converted there; untested on hardware
    decode       "gpu" or "hybrid", with device="cuda": JPEGs are decoded on that card, and the
                 images never lie in the machine's memory; with gpu_input and gpu_engine of
                 dl2.Loader. Needs nvJPEG, and neither augment nor mask; untested on hardware
    pin_memory   decode into page-locked memory; None: where PyTorch has a card
    seed         of order, crops, flips and augmentation; None: PyTorch's, so torch.manual_seed(n)
                 before the loader is made sets it, and without that each run has another. The
                 ranks of torch.distributed take rank 0's: all of them have to make their training
                 loaders in the same order
    rank, world  this process's share of every epoch; None: torch.distributed's, where that is
                 initialized before the loader is made. In training they need a seed, if they are
                 given
    mixup, cutmix  alpha of torchvision's MixUp and CutMix, in training; with both, each is done to
                 half of the batches. Targets are float32 [n, len(classes)] then; 0: none
    labels       targets of your own in place of the classes' numbers: a number, or a row of numbers
                 such as a multi-hot one, for each sample of the dataset, as an array; or the path
                 of a CSV file with lines NAME,NUMBER,... Targets are int64 [n] for one whole number
                 each, else float32 [n] or [n, columns]; -1 or NaN for an image that can't be
                 decoded, in validation
    indices      batches have sidecars["indices"], int64 [n]: loader.dataset.sample(i) is what is
                 known of sample i, such as its path
    batch_transform  a function that is called with what a batch is to be, as in
                 batch_transform(images, targets), and returns what it is
    settings     all others of dl2.Loader: workers, drop_last, area, flip, augment, external, ...

    Each `for` goes through one epoch: 0, then 1, and so on; set_epoch() chooses the next. state_dict() and
    load_state_dict() stop and continue in the middle of an epoch, as torchdata's StatefulDataLoader
    expects. All ranks have len(loader) batches. In training, len(dataset) % world images, others in
    every epoch, are left out and none is repeated; in validation each image comes exactly once, so
    that sums over the ranks are exact, and the last batch of a rank may be empty.

    Targets are the numbers of the classes, in the order of `classes`. In validation the target of
    an image that can't be decoded is -1, and the image black: give the loss ignore_index=-1.

    With targets=("json", "txt"), batches are (images, targets, sidecars): sidecars["json"] is a list of
    what the samples have beside their images under this extension, as bytes, or None. For boxes,
    sidecars["crop_boxes"] is float32 [n, 5], in memory of the CPU: left, top, right and bottom of the part
    of each image that was resized to image_size, in pixels of the upright image, and 1 where left
    and right were exchanged then, else 0.

    With boxes="instances.json" or boxes="txt", targets are a list of dicts, as torchvision's
    detection networks take them: tensors boxes, labels, area, iscrowd, with instance_masks masks, and
    image_id, a number; see dl2.Loader. Images without objects have boxes of [0, 4].

    With mask="png", sidecars["masks"] are the masks that lie beside the images: uint8 [n, height,
    width], in memory of the CPU, cropped, flipped and moved by `augment` as the images are.

    Of volumes, image_size is (depth, height, width), images are [n, channels, depth, height, width] and
    masks [n, depth, height, width]; sidecars["patches"], int64 [n, 6], is what is shown, as in
    dl2.Batch. mean and std are for images: see normalization and window.

    The images lie in the loader's memory and are not copied, but for a card. The memory is used
    again when the tensors that see it are gone: at most `depth` (3) batches can be kept at a time.
    images.clone() keeps one longer.

    torch.utils.data.DataLoader(loader, batch_size=None) works, too, with num_workers=0 or 1; epochs
    go on as without. One loader already uses all cores: `workers` threads, not processes. Lightning's
    Trainer and accelerate's prepare() take the loader itself, without a DataLoader.
    """

    def __init__(self, path: Path, batch_size: int = 64,
                 image_size: Union[int, Tuple[int, int], Tuple[int, int, int]] = 224, *, train: bool = True,
                 dtype: Union[str, torch.dtype] = torch.float32, layout: str = "NCHW",
                 mean: Optional[Sequence[float]] = IMAGENET_MEAN,
                 std: Optional[Sequence[float]] = IMAGENET_STD,
                 device: Union[str, torch.device] = "cpu", pin_memory: Optional[bool] = None,
                 seed: Optional[int] = None, rank: Optional[int] = None, world: Optional[int] = None, mixup: float = 0,
                 cutmix: float = 0, labels: Any = None, indices: bool = False,
                 batch_transform: Optional[Callable[..., Any]] = None, **settings: Any) -> None:
        super().__init__()
        _check_names(settings)
        self.mixup, self.cutmix = float(mixup), float(cutmix)
        self.mixup_enabled = self.mixup > 0 or self.cutmix > 0  # timm's scripts switch it off
        self.batch_size, self.indices, self.batch_transform = batch_size, indices, batch_transform
        if labels is not None and self.mixup_enabled:
            raise ValueError("mixup and cutmix mix classes: leave out labels, or mix in batch_transform")
        self._labels: Optional[torch.Tensor] = None
        self.dtype = _dtype_of(dtype)
        self.device = torch.device(device)
        self.layout = layout
        if layout not in _LAYOUTS:
            raise ValueError(f"layout is one of {', '.join(_LAYOUTS)}, not {layout!r}")
        if self.device.type not in ("cpu", "cuda"):
            raise ValueError(f"device is 'cpu' or 'cuda', not {str(device)!r}: move the batches there")
        if self.device.type == "cuda" and not torch.cuda.is_available():
            raise ValueError(f"device={str(device)!r}: this PyTorch has no CUDA, or sees no card (torch.cuda.is_available())")
        if self.dtype == torch.uint8:
            if mean is not IMAGENET_MEAN or std is not IMAGENET_STD:
                raise ValueError("mean and std are for dtypes of floats, not for uint8")
            mean = std = None
        if not (0 <= self.mixup < math.inf and 0 <= self.cutmix < math.inf):
            raise ValueError(f"mixup and cutmix are 0 or above, not {mixup!r} and {cutmix!r}")
        if (self.mixup or self.cutmix) and not train:
            raise ValueError("mixup and cutmix have no effect without train")
        if self.mixup and self.dtype == torch.uint8:
            raise ValueError("mixup blends floats: it goes with no dtype 'uint8', as cutmix does")
        on_card = self.device.type == "cuda"
        if settings.get("decode", "cpu") != "cpu":
            if not on_card:
                raise ValueError(f"decode={settings['decode']!r} needs device='cuda', not {str(device)!r}")
            if self.device.index is None:
                self.device = torch.device("cuda", torch.cuda.current_device())
            settings.update(device=str(self.device))
        volumes = not isinstance(image_size, int) and len(image_size) == 3
        if volumes and (mean is not IMAGENET_MEAN or std is not IMAGENET_STD):
            raise ValueError("mean and std are for images: volumes have normalization and window")
        if volumes and on_card:
            raise ValueError(f"device={str(device)!r}: volumes are loaded to the CPU; move their batches to the card")
        if volumes and self.dtype == torch.uint8:
            raise ValueError("volumes are loaded as floats, not as uint8")
        if volumes and (self.mixup or self.cutmix):
            raise ValueError("mixup and cutmix mix images, not volumes")
        channels = 3 if volumes else settings.get("channels", 3)
        self._mean = (0.0,) * channels if mean is None else tuple(mean)
        self._std = (1.0,) * channels if std is None else tuple(std)
        if not len(self._mean) == len(self._std) == channels and self.dtype != torch.uint8:
            raise ValueError(f"mean and std need {channels} numbers, one for each channel")
        if on_card and any(number > 1 for number in self._mean + self._std):  # else dl2.Loader looks
            raise ValueError(f"mean {self._mean} and std {self._std}: values are 0 to 1 here, so divide numbers for "
                             "0 to 255 by 255")
        self._pin_memory = torch.cuda.is_available() if pin_memory is None else pin_memory
        if self._pin_memory and not torch.cuda.is_available():  # a warning, as DataLoader's
            warnings.warn("pin_memory has no effect: this PyTorch has no CUDA, or sees no card",
                          UserWarning, stacklevel=2)
            self._pin_memory = False
        made = torch.uint8 if on_card else self.dtype  # by the C loader: a card converts bytes itself
        self._seed_given = seed is not None
        self._takes_world = rank is None  # torch.distributed's, as it is now
        rank, world = _rank_and_world(rank, world)
        settings.update(batch=batch_size, image_size=image_size, train=train, rank=rank, world=world,
                        seed=_seed(seed, train, world),
                        dtype=_DTYPES[made],
                        layout="NCHW" if layout == "NCHW" and not on_card else "NHWC")
        if made != torch.uint8 and not volumes:
            settings.update(mean=self._mean, std=self._std)
        self._settings = settings
        self._path = path
        self._start: Union[int, dict[str, Any], None] = None  # where a loader that is made anew begins
        self._given: Optional[dict[str, Any]] = None  # the position of the batches that were given, not sent
        self._resumed: Optional[int] = None  # the epoch that load_state_dict() began
        self._begun: Optional[int] = None  # the epoch that this process's loader has begun, and no `for` yet
        self._chosen: Optional[int] = None  # set_epoch()'s, until a `for` begins it
        self._running: Optional[weakref.ref[Any]] = None  # the iterator that the loader's batches go to
        # The epoch of the next `for`. A DataLoader makes each `for` a worker process, which sees it.
        self._next = sharedctypes.RawValue("Q", 0)
        self._notes = _Notes()  # of the worker process: what it could not read
        self._loader: Optional[dl2.Loader] = None
        self._process = 0
        for name in "crop_boxes", "masks", "patches", "indices":
            if name in (self.loader.settings["targets"] or "").split(","):
                raise ValueError(f"targets: {name!r} is a tensor of a batch, not an extension here")
        if (self.mixup or self.cutmix) and self.loader.settings["frames"]:
            raise ValueError("mixup and cutmix mix images, not clips: leave out frames")
        if self.loader.settings["boxes"]:
            given = {"mixup": self.mixup, "cutmix": self.cutmix, "labels": labels is not None}
            for name, value in given.items():
                if value:
                    raise ValueError(f"{name} is for classes of images: leave it out with boxes")
            if on_card:
                raise ValueError(f"device={str(device)!r}: boxes are loaded to the CPU; move their batches to the card")
        if (self.mixup or self.cutmix) and self.loader.settings["mask"]:
            raise ValueError("mixup and cutmix mix images and targets, not masks: leave out mask")
        if (self.mixup or self.cutmix) and not self.classes:
            raise ValueError("mixup and cutmix need classes, which this dataset has not")
        if labels is not None:
            self._labels = _labels.tensor(labels, self.dataset)

    @property
    def loader(self) -> dl2.Loader:
        """The dl2.Loader of this process, with settings and stats()."""
        if self._loader is None or self._process != os.getpid():
            worker = data.get_worker_info()
            if worker is not None and worker.num_workers > 1:
                raise ValueError("a dl2.torch.Loader decodes in threads of its own: give the "
                                 f"DataLoader num_workers=0 or 1, not {worker.num_workers}")
            if worker is not None and "device" in self._settings:
                raise ValueError("images that are decoded on a card stay in the process that loads them: "
                                 "give the DataLoader num_workers=0")
            pinned = _pinned if self._pin_memory and worker is None and "device" not in self._settings else None
            self._loader = dl2.Loader(self._path, memory=pinned, **self._settings)
            self._path = self._loader.dataset  # opened once, with the split that was asked for
            self._settings.pop("split", None), self._settings.pop("val_fraction", None)
            self._process = os.getpid()
            if isinstance(self._start, dict):
                self._loader.resume(self._start)
            elif self._start:
                self._loader.start_epoch(self._start)
            self._begun = self._start["epoch"] if isinstance(self._start, dict) else self._start or 0
        return self._loader

    @property
    def dataset(self) -> dl2.Dataset:
        """The dl2.Dataset that is read."""
        return self.loader.dataset

    @property
    def class_to_idx(self) -> Dict[str, int]:
        """The number of each class by its name."""
        return self.dataset.class_to_idx

    @property
    def sampler(self) -> _Sampler:
        """For scripts that call loader.sampler.set_epoch()."""
        return _Sampler(self)

    @property
    def batch_sampler(self) -> None:
        """None: the loader draws its own order."""

    @property
    def bad(self) -> List[str]:
        """The samples that could not be read or decoded so far, each once: 'path: stage: reason';
        also those that a DataLoader's worker process met."""
        return list(dict.fromkeys(self.loader.bad + self._notes.read()))

    def _note_bad(self) -> None:
        """In a worker process, for the one that made the loader."""
        bad = self.loader.bad
        if bad:
            self._notes.add(bad)

    @property
    def classes(self) -> Tuple[str, ...]:
        """The names of the classes: target 3 is classes[3]."""
        return self.dataset.classes

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Batch]:
        if self._takes_world and _world() > 1 and _world() != self._settings["world"]:
            warnings.warn(f"the loader was made before torch.distributed was initialized, {_WHOLE_EPOCH}",
                          RuntimeWarning, stacklevel=2)
        if getattr(sys._getframe(1).f_locals.get("self"), "auto_collation", False):  # the DataLoader's fetcher
            raise ValueError("a dl2.torch.Loader makes whole batches, and a DataLoader would make batches of batches: "
                             "DataLoader(loader, batch_size=None)")
        return _OnCard(self) if self.device.type == "cuda" else _OnCpu(self)

    def _begin(self, batches: Any) -> Iterator[dl2.Batch]:
        """What the iterator `batches` gives: the epoch that was chosen last, or the next."""
        loader = self.loader
        if data.get_worker_info() is not None:
            epoch = self._next.value
            if epoch != self._begun:
                loader.start_epoch(epoch)
            self._next.value = epoch + 1
        elif self._chosen is not None:
            loader.start_epoch(self._chosen)
        self._begun = self._resumed = self._given = self._chosen = None
        self._running = weakref.ref(batches)
        return iter(loader)

    def set_epoch(self, epoch: int) -> None:
        """Chooses the epoch of the next `for`, also of one that has taken no batch yet; one that has
        goes on. No effect where load_state_dict() has just begun the same epoch, so that a loop over
        epochs continues in the middle of one."""
        _refuse_divided_again(sys._getframe(1).f_locals.get("self"), self._settings["world"])
        if not 0 <= epoch < 1 << 64:
            raise ValueError(f"an epoch is a number of 0 or above, not {epoch!r}")
        if epoch != self._resumed:
            self._chosen = self._next.value = epoch
            self._start = self._resumed = None

    def state_dict(self) -> dict[str, Any]:
        """Where the loader stands: a dict that torch.save() and JSON take."""
        if self._chosen is not None and not self._is_running():
            self.loader.start_epoch(self._chosen)
            self._start = self._begun = self._chosen
            self._chosen = self._given = None
        state = dict(self._given) if self._given else self.loader.state()
        if self.mixup or self.cutmix:
            state["settings"] = {**state["settings"], "mixup": self.mixup, "cutmix": self.cutmix}
        return state

    def _is_running(self) -> bool:
        """Is a `for` in the middle of an epoch?"""
        running = self._running is not None and self._running() is not None
        return running and 0 < self.loader.state()["step"] < len(self)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues where state_dict() was asked, in this or another process. ValueError, naming
        what differs, for a state of another dataset, batch_size, rank, image_size or the like, and
        of another seed where this loader was given one, else it takes the state's; a state without
        its "settings" goes on with other images."""
        theirs = state.get("settings")
        for name, ours in ("mixup", self.mixup), ("cutmix", self.cutmix):
            if theirs is not None and theirs.get(name, 0.0) != ours:
                raise ValueError(f"the state is of a loader with other images: it has {name} "
                                 f"{theirs.get(name, 0.0)}, this loader {ours}; without its "
                                 "'settings' the state is taken all the same")
        seed = state.get("order", {}).get("seed")
        if not self._seed_given and seed is not None and seed != self._settings["seed"]:
            self._settings["seed"], self._start, self._loader = seed, None, None  # made anew, with it
        self.loader.resume(state)
        self._start, self._given, self._chosen, self._resumed = state, None, None, state["epoch"]
        self._begun = self._next.value = state["epoch"]

    def _targets(self, batch: dl2.Batch) -> Any:
        """Of the CPU: a tensor, or with boxes a list of dicts."""
        if batch.boxes is not None:
            return _boxes(batch)
        if self._labels is None:
            return from_dlpack(batch.labels.__dlpack__())
        rows = self._labels[from_dlpack(batch.indices.__dlpack__())]
        bad = from_dlpack(batch.crop_boxes.__dlpack__())[:, 2] == 0  # nothing of it is shown
        rows[bad] = -1 if rows.dtype == torch.int64 else math.nan
        return rows

    def _finish(self, epoch: int, step: int, sidecars: Sidecars, images: torch.Tensor,
                targets: Any) -> Batch:
        """The tensors of a batch as they are given: mixed, and with what lies beside the images."""
        if (self.mixup or self.cutmix) and not self.mixup_enabled:
            targets = torch.nn.functional.one_hot(targets, len(self.classes)).to(torch.float32)
        elif self.mixup or self.cutmix:
            height, width = images.shape[1:3] if self.layout == "NHWC" else images.shape[2:4]
            key = f"dl2 {self._settings['seed']} {epoch} {step} {self._settings['rank']}"
            mix = _mix.draw(key, self.mixup, self.cutmix, height, width)
            targets = _mix.apply(mix, images, targets, len(self.classes), self.layout == "NHWC")
        batch = (images, targets, sidecars) if sidecars else (images, targets)
        return batch if self.batch_transform is None else self.batch_transform(*batch)

    def __getstate__(self) -> dict[str, Any]:
        """For pickle, and so for processes that are spawned: what is needed to make it anew."""
        start = self.state_dict()
        spawning = context.get_spawning_popen() is not None
        return {**self.__dict__, "_loader": None, "_process": 0, "_given": None, "_resumed": None, "_running": None,
                "_start": start, "_next": self._next if spawning else start["epoch"],
                "_notes": self._notes if spawning else None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if isinstance(self._next, int):  # a copy goes on by itself
            self._next = sharedctypes.RawValue("Q", self._next)
            self._notes = _Notes()

    def __repr__(self) -> str:
        name = str(self.dtype).split(".")[-1]
        return f"<dl2.torch.Loader {name} {self.layout} on {self.device}: {self.loader!r}>"

    def _repr_html_(self) -> str:
        return _sheet.html(self)


class _OnCpu:
    """The batches of an epoch. It keeps none of them: the memory is the loader's again as soon as
    the caller lets go of the tensors."""

    def __init__(self, owner: Loader) -> None:
        self._owner = owner
        self._permutes = owner.layout == "channels_last"
        self._in_worker = data.get_worker_info() is not None
        # Begun with the first batch, so that set_epoch() still chooses; a worker process is told of it with the epoch.
        self._batches: Optional[Iterator[dl2.Batch]] = owner._begin(self) if self._in_worker else None

    def __iter__(self) -> _OnCpu:
        return self

    def __next__(self) -> Batch:
        if self._batches is None:
            self._batches = self._owner._begin(self)
        try:
            batch = next(self._batches)
        finally:
            if self._in_worker:
                self._owner._note_bad()
        self._owner._start = batch.epoch + 1
        if not self._in_worker and self._owner._chosen is None:
            self._owner._next.value = batch.epoch + 1
        images = from_dlpack(batch.images.__dlpack__())  # a capsule: nothing is asked about devices
        if self._permutes:
            images = _channels_second(images)
        sidecars = _sidecars(batch, self._owner.indices)
        return self._owner._finish(batch.epoch, batch.step, sidecars, images, self._owner._targets(batch))


class _OnCard:
    """The batches of an epoch on a card, the next of which is being copied."""

    def __init__(self, owner: Loader) -> None:
        self._owner = owner
        self._batches: Optional[Iterator[dl2.Batch]] = None  # begun with the first batch
        self._ahead: Any = None
        self._stream = torch.cuda.Stream(owner.device)
        self._mean = torch.tensor(owner._mean, device=owner.device)
        self._std = torch.tensor(owner._std, device=owner.device)
        self._stream.wait_stream(torch.cuda.current_stream(owner.device))

    def __iter__(self) -> _OnCard:
        return self

    def _copy(self, batch: dl2.Batch) -> Tuple[torch.Tensor, torch.Tensor, Any]:
        """A batch on the card, and the event when its own memory is no longer needed. Images that were
        decoded there are read on this stream alone, which the loader has noted: it needs no event."""
        owner = self._owner
        with torch.cuda.stream(self._stream):
            memory = torch.from_dlpack(batch.images)
            images = memory.to(owner.device, non_blocking=True)
            targets = owner._targets(batch).to(owner.device, non_blocking=True)
            copied = torch.cuda.Event()
            copied.record(self._stream)
            images = _convert(images, owner.dtype, owner.layout, self._mean, self._std)
            if images.data_ptr() == memory.data_ptr():
                images = images.clone()  # the loader's memory is not the caller's to keep
        return images, targets, copied

    def _send(self) -> None:
        self._owner._given = self._owner.loader.state()
        batch = next(self._batches, None)
        self._ahead = None if batch is None else (batch, self._copy(batch))

    def __next__(self) -> Batch:
        if self._batches is None:
            self._batches = self._owner._begin(self)
            self._send()
        if self._ahead is None:
            self._owner._given = None
            raise StopIteration
        batch, (images, targets, copied) = self._ahead
        self._ahead = None
        copied.synchronize()  # it was queued a step ago; now the loader may fill the memory again
        where = batch.epoch, batch.step, _sidecars(batch, self._owner.indices)
        del batch
        current = torch.cuda.current_stream(self._owner.device)
        current.wait_stream(self._stream)
        images.record_stream(current)
        targets.record_stream(current)
        self._send()
        return self._owner._finish(*where, images, targets)


def _pillow(pixels: dl2.Array) -> Any:
    """An image of RGB as Pillow has it."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("dl2.torch.Dataset gives images of Pillow, which is not installed "
                          "(pip install pillow; Debian: python3-pil)") from error
    height, width, _ = pixels.shape
    return Image.frombytes("RGB", (width, height), memoryview(pixels).tobytes())


class Dataset(data.Dataset):
    """A map-style dataset: dataset[i] is (image, target), as torchvision's ImageFolder has it.

    path, split       as dl2.Dataset takes them: a folder, a packed dataset or a list; 'train', 'val',
                      'test' or 'all'
    transform         called with a Pillow image, upright and RGB; None: the Pillow image itself
    target_transform  called with the number of the class
    drop_bands        of images with more bands than gray or RGB, take gray or RGB; else dl2.Error
    options           all others of dl2.Dataset

    Images are decoded as Loader decodes them, but whole, in the calling thread, and are of Pillow's
    type. In a notebook, the dataset shows a contact sheet.
    """

    def __init__(self, path: Path, split: str = "train",
                 transform: Optional[Callable[[Any], Any]] = None,
                 target_transform: Optional[Callable[[int], Any]] = None, *, drop_bands: bool = False,
                 **options: Any) -> None:
        self.dataset = path if isinstance(path, dl2.Dataset) else dl2.Dataset(path, split, **options)
        if self.dataset.kind == "volume":
            raise ValueError("the dataset holds volumes, which Loader(..., image_size=(depth, height, width)) loads")
        if self.dataset.kind == "video":
            raise ValueError("the dataset holds videos, which Loader(..., frames=N) loads")
        if self.dataset.kind == "clip":
            raise ValueError("the dataset holds clips, which Loader(..., frames=N) loads; "
                             "samples='images' makes each frame an image")
        self.transform = transform
        self.target_transform = target_transform
        self.drop_bands = drop_bands

    @property
    def classes(self) -> Tuple[str, ...]:
        """The names of the classes: target 3 is classes[3]."""
        return self.dataset.classes

    @property
    def class_to_idx(self) -> Dict[str, int]:
        """The number of each class by its name."""
        return self.dataset.class_to_idx

    @property
    def targets(self) -> List[int]:
        """The numbers of the samples' classes, without target_transform; a new list."""
        return self.dataset.targets

    @property
    def samples(self) -> List[Tuple[str, int]]:
        """(path, number of the class) of the samples; a new list."""
        return self.dataset.samples

    imgs = samples

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Tuple[Any, Any]:
        image = _pillow(self.dataset.image(index, drop_bands=self.drop_bands))
        target = self.dataset.sample(index).label
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target

    def __repr__(self) -> str:
        return f"<dl2.torch.Dataset, transform {self.transform!r}: {self.dataset!r}>"

    def _repr_html_(self) -> str:
        return _sheet.html(self.dataset)
