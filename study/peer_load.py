# SPDX-License-Identifier: BSD-2-Clause
"""What a loader, another one or dl2 from Python, makes of a folder of images.

    peer_load.py PEER FOLDER SIZE BATCH WORKERS EPOCHS WORK
        prints a line of facts (peak memory of the process in MB, bytes on disk of what it reads, versions), and a
        line with the images a second of every epoch but the first, which warms up; where EPOCHS is "none" it only
        makes its files in WORK, so that writing them adds nothing to the memory; for tests/bench/compare_load.sh
    peer_load.py measure PEER FOLDER SIZE BATCH WORKERS SECONDS WORK DEVICE_RATE JSON [cold]
        loads for SECONDS, after as many to warm up, and then as long with a device that takes DEVICE_RATE images a
        second of the batches, one after the other; writes a dl2-loader/1 to JSON; "cold" evicts the files from
        Linux's page cache before each epoch. FOLDER/train, if there is one, is what is loaded. For dl2-study
    peer_load.py check PEER
        says why the peer cannot run here, if so
    PEER: a key of PEERS, below; with measure also "synthetic", which has its batches already

Each does what its own documentation shows for ImageNet on the CPU: random crop of 8 to 100% of the area, aspect 3/4 to
4/3, resize to SIZE, flip with probability 1/2, uint8 NHWC in one batch (those with torchvision's transforms: what these
make, NCHW).

    peer              reads                          decodes                              resizes
    dl2               FOLDER                         the crop, at a reduced scale         antialiased
    torchvision       FOLDER                         the image, Pillow                    antialiased
    torchcodec        FOLDER                         the image, libjpeg-turbo             antialiased
    webdataset        tar shards of FOLDER's files   the image, Pillow                    antialiased
    litdata           chunks of FOLDER's files       the image, torchvision's             antialiased
    datasets          FOLDER, and a table of names   the image, Pillow                    antialiased
                      or its Parquet files, in Arrow
    grain             FOLDER                         the image, Pillow                    antialiased
    spdl              FOLDER                         the image, FFmpeg                    FFmpeg's bilinear
    dali              FOLDER                         the crop, libjpeg-turbo              antialiased
    dali_bilinear     FOLDER                         the crop, libjpeg-turbo              bilinear alone: faster
    dali_dynamic      FOLDER                         the crop, libjpeg-turbo              antialiased
    ffcv              its file, JPEG of quality 90   the image, libjpeg-turbo             OpenCV's area
    ffcv_raw          its file, pixels               nothing                              OpenCV's area

With one worker, those on PyTorch's DataLoader take the better of a worker process and none; with CLOCK=cpu none. FFCV cannot hold JPEGs
as they are: it compresses the decoded images of FFCV_SOURCE, a twin of FOLDER.
"""
import functools
import glob
import importlib
import itertools
import json
import os
import signal
import sys
import time
from importlib import metadata

# On a machine that others use too, CLOCK=cpu counts CPU seconds of the process, threads included.
clock = time.process_time if os.environ.get("CLOCK") == "cpu" else time.perf_counter
AREA, ASPECT = (0.08, 1.0), (3 / 4, 4 / 3)


def transform_of(size):
    from torchvision import transforms

    return transforms.Compose([transforms.RandomResizedCrop(size), transforms.RandomHorizontalFlip(),
                               transforms.PILToTensor()])


def tensor_transform_of(size):
    from torchvision.transforms import v2

    return v2.Compose([v2.RandomResizedCrop(size, antialias=True), v2.RandomHorizontalFlip()])


def sizes_of(loader):
    """The number of images of each batch of an epoch."""
    return (len(labels) for _, labels in loader)


def of_torch(make_loader, workers):
    import torch

    torch.set_num_threads(1)
    return [functools.partial(sizes_of, make_loader(n))
            for n in ([0] if clock is time.process_time else [0, 1] if workers == 1 else [workers])]


def of_data_loader(data, batch, workers):
    from torch.utils.data import DataLoader

    return of_torch(lambda n: DataLoader(data, batch, shuffle=True, num_workers=n, persistent_workers=n > 0), workers)


# Each peer returns ways to load an epoch, of which the fastest counts: a call makes an iterator over batches, which
# yields the number of images of each.


def dl2_peer(folder, size, batch, workers, work):
    from dl2.torch import Loader
    import torch

    loader = Loader(folder, split="all", batch_size=batch, image_size=size, workers=workers, dtype=torch.uint8,
                    layout="NHWC")
    return [lambda: sizes_of(loader)]


def torchvision_peer(folder, size, batch, workers, work):
    from torchvision import datasets

    return of_data_loader(datasets.ImageFolder(folder, transform_of(size)), batch, workers)


def torchcodec_peer(folder, size, batch, workers, work):
    from torchcodec.decoders import decode_image
    from torchvision import datasets

    data = datasets.ImageFolder(folder, tensor_transform_of(size), loader=functools.partial(decode_image, mode="RGB"))
    return of_data_loader(data, batch, workers)


def made(path, make):
    """PATH, which make(PATH of a part) has made, now or in an earlier run."""
    if not os.path.exists(path):
        make(path + ".part")
        os.rename(path + ".part", path)
    return path


def webdataset_peer(folder, size, batch, workers, work):
    import webdataset
    from torchvision import datasets

    def make(shards):
        os.mkdir(shards)
        with webdataset.ShardWriter(os.path.join(shards, "%06d.tar"), maxcount=100, verbose=0) as writer:
            for path, label in datasets.ImageFolder(folder).samples:
                with open(path, "rb") as file:
                    name = os.path.relpath(path, folder).rsplit(".", 1)[0].replace(".", "_")
                    writer.write({"__key__": name, "jpg": file.read(), "cls": label})

    shards = made(os.path.join(work, "shards"), make)
    files = sorted(os.path.join(shards, name) for name in os.listdir(shards))
    data = (webdataset.WebDataset(files, shardshuffle=len(files)).shuffle(1000).decode("pilrgb")
            .to_tuple("jpg", "cls").map_tuple(transform_of(size)).batched(batch))
    return of_torch(lambda n: webdataset.WebLoader(data, batch_size=None, num_workers=n, persistent_workers=n > 0),
                    workers)


def litdata_sample(sample):
    import litdata

    return {"image": litdata.Jpeg(path=sample[0]), "label": sample[1]}


def litdata_peer(folder, size, batch, workers, work):
    import litdata
    from torchvision import datasets

    chunks = made(os.path.join(work, "chunks"), lambda path: litdata.optimize(
        fn=litdata_sample, inputs=datasets.ImageFolder(folder).samples, output_dir=path, chunk_bytes="64MB",
        num_workers=1))
    transform = tensor_transform_of(size)

    class Images(litdata.StreamingDataset):
        def __getitem__(self, index):
            sample = super().__getitem__(index)
            return transform(sample["image"]), sample["label"]

    data = Images(chunks, shuffle=True)
    return of_torch(lambda n: litdata.StreamingDataLoader(data, batch_size=batch, num_workers=n), workers)


def datasets_peer(folder, size, batch, workers, work):
    import datasets
    from torch.utils.data import DataLoader

    transform = transform_of(size)
    tables = glob.glob(os.path.join(folder, "**", "*.parquet"), recursive=True)
    # Without data_files a file called bullet_train would be the only training image.
    data = (datasets.load_dataset("parquet", data_files=tables, split="train", cache_dir=os.path.join(work, "arrow"))
            if tables else
            datasets.load_dataset("imagefolder", data_files={"train": os.path.join(folder, "**")}, drop_labels=False,
                                  split="train", cache_dir=os.path.join(work, "arrow")))
    data.set_transform(lambda items: {"image": [transform(image.convert("RGB")) for image in items["image"]],
                                      "label": items["label"]})

    def collate(items):
        import torch

        return torch.stack([item["image"] for item in items]), torch.tensor([item["label"] for item in items])

    return of_torch(lambda n: DataLoader(data, batch, shuffle=True, num_workers=n, collate_fn=collate,
                                         persistent_workers=n > 0), workers)


def grain_peer(folder, size, batch, workers, work):
    import grain
    import numpy
    from PIL import Image
    from torchvision import datasets, transforms

    transform = transforms.Compose([transforms.RandomResizedCrop(size), transforms.RandomHorizontalFlip()])

    def load(sample):
        with Image.open(sample[0]) as image:
            return numpy.asarray(transform(image.convert("RGB"))), sample[1]

    samples = datasets.ImageFolder(folder).samples
    rounds = itertools.count()

    def epoch():
        data = grain.MapDataset.source(samples).shuffle(seed=next(rounds)).map(load).batch(batch)
        return sizes_of(data.to_iter_dataset(
            grain.ReadOptions(num_threads=workers, prefetch_buffer_size=2 * batch)))

    return [epoch]


def spdl_peer(folder, size, batch, workers, work):
    import random

    import spdl.io
    from spdl.pipeline import PipelineBuilder
    from torchvision import datasets
    from torchvision.transforms import RandomResizedCrop

    samples = datasets.ImageFolder(folder).samples

    def load(sample):
        import torch

        packets = spdl.io.demux_image(sample[0])
        shape = torch.empty(1, packets.height, packets.width, device="meta")
        y, x, height, width = RandomResizedCrop.get_params(shape, AREA, ASPECT)
        flip = ",hflip" if random.random() < 0.5 else ""
        return sample[1], spdl.io.decode_packets(
            packets, filter_desc=f"crop={width}:{height}:{x}:{y}:exact=1,"
                                 f"scale={size}:{size}:flags=bilinear{flip},format=rgb24")

    def collate(items):
        labels, frames = zip(*items)
        return spdl.io.to_numpy(spdl.io.convert_frames(list(frames))), labels

    def epoch():
        random.shuffle(samples)
        pipeline = (PipelineBuilder().add_source(samples).pipe(load, concurrency=workers)
                    .aggregate(batch).pipe(collate).add_sink(2).build(num_threads=workers))
        with pipeline.auto_stop():
            yield from sizes_of(pipeline)

    return [epoch]


def dali_peer(folder, size, batch, workers, work, antialias=True):
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=batch, num_threads=workers, device_id=None)
    def pipeline():
        encoded, labels = fn.readers.file(file_root=folder, random_shuffle=True, name="reader")
        images = fn.decoders.image_random_crop(encoded, device="cpu", random_area=AREA, random_aspect_ratio=ASPECT)
        images = fn.resize(images, size=[size, size], antialias=antialias,
                           interp_type=types.INTERP_TRIANGULAR if antialias else types.INTERP_LINEAR)
        return fn.flip(images, horizontal=fn.random.coin_flip()), labels

    pipe = pipeline()
    pipe.build()
    steps = (pipe.epoch_size("reader") + batch - 1) // batch

    def epoch():
        for _ in range(steps):
            pipe.run()[0].as_tensor()
            yield batch

    return [epoch]


def dali_dynamic_peer(folder, size, batch, workers, work):
    import nvidia.dali.experimental.dynamic as ndd
    from nvidia.dali import types

    ndd.set_num_threads(workers)
    reader = ndd.readers.File(file_root=folder, random_shuffle=True)

    def epoch():
        for encoded, labels in reader.next_epoch(batch_size=batch):
            images = ndd.decoders.image_random_crop(encoded, device="cpu", random_area=AREA,
                                                    random_aspect_ratio=ASPECT)
            images = ndd.resize(images, size=[size, size], antialias=True, interp_type=types.INTERP_TRIANGULAR)
            images = ndd.flip(images, horizontal=ndd.random.coin_flip(batch_size=encoded.batch_size))
            ndd.as_tensor(images).evaluate()
            yield encoded.batch_size

    return [epoch]


def ffcv_peer(folder, size, batch, workers, work, mode="jpg"):
    import numpy
    from ffcv.fields import IntField, RGBImageField
    from ffcv.fields.decoders import IntDecoder, RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import RandomHorizontalFlip, Squeeze, ToTensor
    from ffcv.writer import DatasetWriter
    from torchvision import datasets

    def make(path):
        source = datasets.ImageFolder(os.environ["FFCV_SOURCE"])

        class Arrays:
            def __len__(self):
                return len(source)

            def __getitem__(self, index):
                image, label = source[index]
                return numpy.asarray(image.convert("RGB")), label

        # A page must hold the largest image.
        DatasetWriter(path, {"image": RGBImageField(write_mode=mode, jpeg_quality=90), "label": IntField()},
                      page_size=1 << (24 if mode == "raw" else 23), num_workers=1).from_indexed_dataset(Arrays())

    loader = Loader(made(os.path.join(work, f"ffcv-{mode}.beton"), make), batch_size=batch, num_workers=workers,
                    order=OrderOption.RANDOM, os_cache=True, drop_last=False,
                    pipelines={"image": [RandomResizedCropRGBImageDecoder((size, size)),
                                         RandomHorizontalFlip(), ToTensor()],
                               "label": [IntDecoder(), ToTensor(), Squeeze()]})
    return [lambda: sizes_of(loader)]


# What a peer runs, its module, its package, and what it reads of WORK, if not FOLDER.
PEERS = {"dl2": (dl2_peer, "dl2.torch", "torch", None),
         "torch": (torchvision_peer, "torchvision", "torchvision", None),
         "torchcodec": (torchcodec_peer, "torchcodec", "torchcodec", None),
         "webdataset": (webdataset_peer, "webdataset", "webdataset", "shards"),
         "litdata": (litdata_peer, "litdata", "litdata", "chunks"),
         "datasets": (datasets_peer, "datasets", "datasets", None),
         "grain": (grain_peer, "grain", "grain", None),
         "spdl": (spdl_peer, "spdl.pipeline", "spdl", None),
         "dali": (dali_peer, "nvidia.dali", "nvidia-dali-cuda120", None),
         "dali_bilinear": (functools.partial(dali_peer, antialias=False), "nvidia.dali", "nvidia-dali-cuda120", None),
         "dali_dynamic": (dali_dynamic_peer, "nvidia.dali.experimental.dynamic", "nvidia-dali-cuda120", None),
         "ffcv": (ffcv_peer, "ffcv", "ffcv", "ffcv-jpg.beton"),
         "ffcv_raw": (functools.partial(ffcv_peer, mode="raw"), "ffcv", "ffcv", "ffcv-raw.beton")}


def version_of(module, package):
    """Of the distribution that has the module: DALI's name has the version of CUDA."""
    names = metadata.packages_distributions().get(module.split(".")[0], []) if hasattr(
        metadata, "packages_distributions") else []
    names = [name for name in names if name.startswith(package.rsplit("-", 1)[0])] or [package]
    return names[0], metadata.version(names[0])


def bytes_of(path):
    return os.path.getsize(path) if os.path.isfile(path) else sum(
        os.path.getsize(os.path.join(parent, name)) for parent, _, names in os.walk(path) for name in names)


def peak_memory():
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))


def rates_of(ways, epochs):
    """The images a second of each epoch, by the way that is the fastest in it."""
    for _ in range(epochs):
        best = 0
        for way in ways:
            start = clock()
            count = sum(way())
            best = max(best, count / (clock() - start))
        yield best


def tree():
    """This process and its workers."""
    processes = [os.getpid()]
    for process in processes:
        for children in glob.glob(f"/proc/{process}/task/*/children"):
            with open(children, encoding="ascii") as file:
                processes += map(int, file.read().split())
    return processes


def use_of_tree():
    """Their CPU seconds, and the bytes that they had from disks."""
    cpu = read = 0
    for process in tree():
        with open(f"/proc/{process}/stat", encoding="utf-8") as file:
            cpu += sum(int(field) for field in file.read().rsplit(")", 1)[1].split()[11:13])
        with open(f"/proc/{process}/io", encoding="ascii") as file:
            read += next(int(line.split()[1]) for line in file if line.startswith("read_bytes"))
    return cpu / os.sysconf("SC_CLK_TCK"), read


def evict(folder):
    for parent, _, names in os.walk(folder):
        for name in names:
            file = os.open(os.path.join(parent, name), os.O_RDONLY)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)


class Stream:
    """The batches of one epoch after the other, and the seconds that evicting took."""

    def __init__(self, way, evicts):
        self.evicting = 0
        self.sizes = self.batches(way, evicts)

    def batches(self, way, evicts):
        while True:
            start = time.perf_counter()
            if evicts:
                evict(evicts)
            self.evicting += time.perf_counter() - start
            yield from way()

    def run(self, seconds, device_rate=0):
        """Loads for so long; a device computes on each batch before it takes the next one."""
        start, out = time.perf_counter(), self.evicting
        cpu, read = use_of_tree()
        images = waited = 0
        while time.perf_counter() - start - (self.evicting - out) < seconds or not images:
            asked, before = time.perf_counter(), self.evicting
            images += (size := next(self.sizes))
            waited += time.perf_counter() - asked - (self.evicting - before)
            if device_rate:
                time.sleep(size / device_rate)
        elapsed = time.perf_counter() - start - (self.evicting - out)
        after = use_of_tree()
        return {"images": images, "seconds": elapsed, "images_per_second": images / elapsed,
                "wait": min(waited / elapsed, 1), "busy": min(images / device_rate / elapsed, 1) if device_rate else None,
                "cores": (after[0] - cpu) / elapsed, "disk_bytes": after[1] - read}


def measure(peer, folder, size, batch, workers, seconds, work, device_rate, path, cold=""):
    inside = os.path.join(folder, "train")
    folder = inside if os.path.isdir(inside) else folder
    seconds, batch, device_rate = float(seconds), int(batch), float(device_rate)
    found = {"schema": "dl2-loader/1", "loader": peer, "path": folder, "image_size": int(size), "batch": batch,
             "workers": int(workers), "cold": bool(cold), "device_rate": device_rate}
    if peer == "synthetic":
        stream = Stream(lambda: itertools.repeat(batch), None)
    else:
        run, module, package, file = PEERS[peer]
        found["package"], found["version"] = version_of(module, package)
        if file:
            os.makedirs(work, exist_ok=True)
        ways = run(folder, int(size), batch, int(workers), work)
        streams = [Stream(way, folder if cold else None) for way in ways]
        stream = max(streams, key=lambda stream: stream.run(seconds)["images_per_second"])
        found["load"] = stream.run(seconds)
    found["device"] = stream.run(seconds, device_rate)
    found["peak_memory_bytes"] = peak_memory()
    with open(path, "w", encoding="utf-8") as file:
        json.dump(found, file, indent=1)
    for process in tree()[1:]:  # workers in the middle of an epoch would be waited for
        os.kill(process, signal.SIGKILL)
    os._exit(0)


def check(peer):
    if peer not in PEERS:
        sys.exit(f"it is none of {', '.join(PEERS)}")
    _, module, package, _ = PEERS[peer]
    try:
        importlib.import_module(module)
    except Exception as error:  # what it needs may fail in many ways
        sys.exit(f"{error} (package {package})")


def main():
    if sys.argv[1] in ("measure", "check"):
        return {"measure": measure, "check": check}[sys.argv[1]](*sys.argv[2:])
    peer, folder, size, batch, workers, epochs, work = sys.argv[1:]
    run, module, package, file = PEERS[peer]
    count = 0 if epochs == "none" else int(epochs) + 1
    rates = list(rates_of(run(folder, int(size), int(batch), int(workers), work), count))[1:]
    print("facts", peak_memory() // 1000000, bytes_of(os.path.join(work, file) if file else folder),
          *version_of(module, package))
    print(" ".join(f"{rate:.0f}" for rate in rates))


if __name__ == "__main__":
    main()
