# SPDX-License-Identifier: BSD-2-Clause
"""What another loader makes of a folder of images, for compare_load.sh.

    peer_load.py PEER FOLDER SIZE BATCH WORKERS EPOCHS WORK
        PEER: a key of PEERS, below
        prints a line of facts (peak memory of the process in MB, bytes on disk of what it reads, versions), and a
        line with the images a second of every epoch but the first, which warms up; where EPOCHS is "none" it only
        makes its files in WORK, so that writing them adds nothing to the memory

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

Those on PyTorch's DataLoader take the better of a worker process and none; with CLOCK=cpu none. FFCV cannot hold JPEGs
as they are: it compresses the decoded images of FFCV_SOURCE, a twin of FOLDER.
"""
import functools
import glob
import os
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


def timed(epoch, epochs):
    """The images a second of each call of epoch(), which returns their number."""
    for _ in range(epochs):
        start = clock()
        yield epoch() / (clock() - start)


def torch_epochs(make_loader, workers, epochs):
    import torch

    torch.set_num_threads(1)
    loaders = [make_loader(n)
               for n in ([0] if clock is time.process_time else [0, 1] if workers == 1 else [workers])]
    for _ in range(epochs):
        best = 0
        for loader in loaders:
            start = clock()
            count = sum(len(labels) for _, labels in loader)
            best = max(best, count / (clock() - start))
        yield best


def data_loader_epochs(data, batch, workers, epochs):
    from torch.utils.data import DataLoader

    yield from torch_epochs(lambda n: DataLoader(data, batch, shuffle=True, num_workers=n,
                                                 persistent_workers=n > 0), workers, epochs)


def dl2_epochs(folder, size, batch, workers, epochs, work):
    from dl2.torch import Loader
    import torch

    loader = Loader(folder, split="all", batch_size=batch, image_size=size, workers=workers, dtype=torch.uint8,
                    layout="NHWC")
    yield from timed(lambda: sum(len(labels) for _, labels in loader), epochs)


def torchvision_epochs(folder, size, batch, workers, epochs, work):
    from torchvision import datasets

    yield from data_loader_epochs(datasets.ImageFolder(folder, transform_of(size)), batch, workers, epochs)


def torchcodec_epochs(folder, size, batch, workers, epochs, work):
    from torchcodec.decoders import decode_image
    from torchvision import datasets

    data = datasets.ImageFolder(folder, tensor_transform_of(size), loader=functools.partial(decode_image, mode="RGB"))
    yield from data_loader_epochs(data, batch, workers, epochs)


def made(path, make):
    """PATH, which make(PATH of a part) has made, now or in an earlier run."""
    if not os.path.exists(path):
        make(path + ".part")
        os.rename(path + ".part", path)
    return path


def webdataset_epochs(folder, size, batch, workers, epochs, work):
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
    yield from torch_epochs(lambda n: webdataset.WebLoader(data, batch_size=None, num_workers=n,
                                                           persistent_workers=n > 0), workers, epochs)


def litdata_sample(sample):
    import litdata

    return {"image": litdata.Jpeg(path=sample[0]), "label": sample[1]}


def litdata_epochs(folder, size, batch, workers, epochs, work):
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
    yield from torch_epochs(lambda n: litdata.StreamingDataLoader(data, batch_size=batch, num_workers=n), workers,
                            epochs)


def datasets_epochs(folder, size, batch, workers, epochs, work):
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

    yield from torch_epochs(lambda n: DataLoader(data, batch, shuffle=True, num_workers=n, collate_fn=collate,
                                                 persistent_workers=n > 0), workers, epochs)


def grain_epochs(folder, size, batch, workers, epochs, work):
    import grain
    import numpy
    from PIL import Image
    from torchvision import datasets, transforms

    transform = transforms.Compose([transforms.RandomResizedCrop(size), transforms.RandomHorizontalFlip()])

    def load(sample):
        with Image.open(sample[0]) as image:
            return numpy.asarray(transform(image.convert("RGB"))), sample[1]

    samples = datasets.ImageFolder(folder).samples
    rounds = iter(range(epochs))

    def epoch():
        data = grain.MapDataset.source(samples).shuffle(seed=next(rounds)).map(load).batch(batch)
        return sum(len(labels) for _, labels in data.to_iter_dataset(
            grain.ReadOptions(num_threads=workers, prefetch_buffer_size=2 * batch)))

    yield from timed(epoch, epochs)


def spdl_epochs(folder, size, batch, workers, epochs, work):
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
            return sum(len(labels) for _, labels in pipeline)

    yield from timed(epoch, epochs)


def dali_epochs(folder, size, batch, workers, epochs, work, antialias=True):
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
        return steps * batch

    yield from timed(epoch, epochs)


def dali_dynamic_epochs(folder, size, batch, workers, epochs, work):
    import nvidia.dali.experimental.dynamic as ndd
    from nvidia.dali import types

    ndd.set_num_threads(workers)
    reader = ndd.readers.File(file_root=folder, random_shuffle=True)

    def epoch():
        count = 0
        for encoded, labels in reader.next_epoch(batch_size=batch):
            images = ndd.decoders.image_random_crop(encoded, device="cpu", random_area=AREA,
                                                    random_aspect_ratio=ASPECT)
            images = ndd.resize(images, size=[size, size], antialias=True, interp_type=types.INTERP_TRIANGULAR)
            images = ndd.flip(images, horizontal=ndd.random.coin_flip(batch_size=encoded.batch_size))
            ndd.as_tensor(images).evaluate()
            count += encoded.batch_size
        return count

    yield from timed(epoch, epochs)


def ffcv_epochs(folder, size, batch, workers, epochs, work, mode="jpg"):
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
    yield from timed(lambda: sum(len(labels) for _, labels in loader), epochs)


# What a peer runs, its package, and what it reads of WORK, if not FOLDER.
PEERS = {"dl2": (dl2_epochs, "torch", None),
         "torchvision": (torchvision_epochs, "torchvision", None),
         "torchcodec": (torchcodec_epochs, "torchcodec", None),
         "webdataset": (webdataset_epochs, "webdataset", "shards"),
         "litdata": (litdata_epochs, "litdata", "chunks"),
         "datasets": (datasets_epochs, "datasets", None),
         "grain": (grain_epochs, "grain", None),
         "spdl": (spdl_epochs, "spdl", None),
         "dali": (dali_epochs, "nvidia-dali-cuda120", None),
         "dali_bilinear": (functools.partial(dali_epochs, antialias=False), "nvidia-dali-cuda120", None),
         "dali_dynamic": (dali_dynamic_epochs, "nvidia-dali-cuda120", None),
         "ffcv": (ffcv_epochs, "ffcv", "ffcv-jpg.beton"),
         "ffcv_raw": (functools.partial(ffcv_epochs, mode="raw"), "ffcv", "ffcv-raw.beton")}


def bytes_of(path):
    return os.path.getsize(path) if os.path.isfile(path) else sum(
        os.path.getsize(os.path.join(parent, name)) for parent, _, names in os.walk(path) for name in names)


def peak_memory():
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))


def main():
    peer, folder, size, batch, workers, epochs, work = sys.argv[1:]
    run, package, file = PEERS[peer]
    count = 0 if epochs == "none" else int(epochs) + 1
    rates = list(run(folder, int(size), int(batch), int(workers), count, work))[1:]
    print("facts", peak_memory() // 1000000, bytes_of(os.path.join(work, file) if file else folder), package,
          metadata.version(package))
    print(" ".join(f"{rate:.0f}" for rate in rates))


if __name__ == "__main__":
    main()
