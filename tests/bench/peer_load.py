# SPDX-License-Identifier: BSD-2-Clause
"""What another loader makes of a folder of images, for compare_load.sh.

    peer_load.py PEER FOLDER SIZE BATCH WORKERS EPOCHS WORK
        PEER: torchvision, torchcodec, webdataset, dali, ffcv, spdl
        prints the images a second of every epoch but the first, which warms up

Each does what its own documentation shows for ImageNet on the CPU: random crop of 8 to 100% of the area, aspect 3/4 to
4/3, resize to SIZE, flip with probability 1/2, uint8 NHWC in one batch (torchvision, torchcodec: what their tensors are,
NCHW). torchvision decodes by Pillow; torchcodec's decoder, which replaces torchvision's own, has torchvision's transforms of
tensors behind it. torchvision, torchcodec and webdataset take the better of a worker process and none. webdataset reads tar files, which it makes of
FOLDER, and transforms with torchvision. SPDL decodes and transforms with FFmpeg's filters, in threads. FFCV reads its own file, which it makes of FOLDER's lossless
twin (FFCV_SOURCE) as JPEG of quality 90, so that nothing is compressed twice.
"""
import os
import sys
import time

# On a machine that others use too, CLOCK=cpu counts CPU seconds of the process, threads included.
clock = time.process_time if os.environ.get("CLOCK") == "cpu" else time.perf_counter


def transform_of(size):
    from torchvision import transforms

    return transforms.Compose([transforms.RandomResizedCrop(size), transforms.RandomHorizontalFlip(),
                               transforms.PILToTensor()])


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


def torchvision_epochs(folder, size, batch, workers, epochs, work):
    from torch.utils.data import DataLoader
    from torchvision import datasets

    data = datasets.ImageFolder(folder, transform_of(size))
    yield from torch_epochs(lambda n: DataLoader(data, batch, shuffle=True, num_workers=n,
                                                 persistent_workers=n > 0), workers, epochs)


def torchcodec_epochs(folder, size, batch, workers, epochs, work):
    from torch.utils.data import DataLoader
    from torchcodec.decoders import decode_image
    from torchvision import datasets
    from torchvision.transforms import v2

    transform = v2.Compose([v2.RandomResizedCrop(size, antialias=True), v2.RandomHorizontalFlip()])
    data = datasets.ImageFolder(folder, transform, loader=decode_image)
    yield from torch_epochs(lambda n: DataLoader(data, batch, shuffle=True, num_workers=n,
                                                 persistent_workers=n > 0), workers, epochs)


def webdataset_epochs(folder, size, batch, workers, epochs, work):
    import webdataset
    from torchvision import datasets

    shards = os.path.join(work, "shards")
    if not os.path.isdir(shards):
        os.mkdir(shards + ".part")
        with webdataset.ShardWriter(os.path.join(shards + ".part", "%06d.tar"), maxcount=100, verbose=0) as writer:
            for path, label in datasets.ImageFolder(folder).samples:
                with open(path, "rb") as file:
                    name = os.path.relpath(path, folder).rsplit(".", 1)[0].replace(".", "_")
                    writer.write({"__key__": name, "jpg": file.read(), "cls": label})
        os.rename(shards + ".part", shards)
    files = sorted(os.path.join(shards, name) for name in os.listdir(shards))
    data = (webdataset.WebDataset(files, shardshuffle=len(files)).shuffle(1000).decode("pil")
            .to_tuple("jpg", "cls").map_tuple(transform_of(size)).batched(batch))
    yield from torch_epochs(lambda n: webdataset.WebLoader(data, batch_size=None, num_workers=n,
                                                           persistent_workers=n > 0), workers, epochs)


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
        y, x, height, width = RandomResizedCrop.get_params(shape, (0.08, 1.0), (3 / 4, 4 / 3))
        flip = ",hflip" if random.random() < 0.5 else ""
        return sample[1], spdl.io.decode_packets(
            packets, filter_desc=f"crop={width}:{height}:{x}:{y}:exact=1,"
                                 f"scale={size}:{size}:flags=bilinear{flip},format=rgb24")

    def collate(items):
        labels, frames = zip(*items)
        return spdl.io.to_numpy(spdl.io.convert_frames(list(frames))), labels

    for _ in range(epochs):
        start = clock()
        random.shuffle(samples)
        pipeline = (PipelineBuilder().add_source(samples).pipe(load, concurrency=workers)
                    .aggregate(batch).pipe(collate).add_sink(2).build(num_threads=workers))
        with pipeline.auto_stop():
            count = sum(len(labels) for _, labels in pipeline)
        yield count / (clock() - start)


def dali_epochs(folder, size, batch, workers, epochs, work):
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=batch, num_threads=workers, device_id=None)
    def pipeline():
        encoded, labels = fn.readers.file(file_root=folder, random_shuffle=True, name="reader")
        images = fn.decoders.image_random_crop(encoded, device="cpu", random_area=[0.08, 1.0],
                                               random_aspect_ratio=[3 / 4, 4 / 3])
        # antialias=False is DALI's faster way; DALI_ANTIALIAS=1 asks for what the others do.
        images = fn.resize(images, size=[size, size], interp_type=types.INTERP_TRIANGULAR
                           if os.environ.get("DALI_ANTIALIAS") else types.INTERP_LINEAR,
                           antialias=bool(os.environ.get("DALI_ANTIALIAS")))
        return fn.flip(images, horizontal=fn.random.coin_flip()), labels

    pipe = pipeline()
    pipe.build()
    count = pipe.epoch_size("reader")
    steps = (count + batch - 1) // batch
    for _ in range(epochs):
        start = clock()
        for _ in range(steps):
            pipe.run()[0].as_tensor()
        yield steps * batch / (clock() - start)


def ffcv_epochs(folder, size, batch, workers, epochs, work):
    import numpy
    from ffcv.fields import IntField, RGBImageField
    from ffcv.fields.decoders import IntDecoder, RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import RandomHorizontalFlip, Squeeze, ToTensor
    from ffcv.writer import DatasetWriter
    from torchvision import datasets

    path = os.path.join(work, "dataset.beton")
    if not os.path.exists(path):
        source = datasets.ImageFolder(os.environ["FFCV_SOURCE"])

        class Arrays:
            def __len__(self):
                return len(source)

            def __getitem__(self, index):
                image, label = source[index]
                return numpy.asarray(image.convert("RGB")), label

        DatasetWriter(path, {"image": RGBImageField(write_mode="jpg", jpeg_quality=90),
                             "label": IntField()}, num_workers=1).from_indexed_dataset(Arrays())
    loader = Loader(path, batch_size=batch, num_workers=workers, order=OrderOption.RANDOM, os_cache=True,
                    drop_last=False,
                    pipelines={"image": [RandomResizedCropRGBImageDecoder((size, size)),
                                         RandomHorizontalFlip(), ToTensor()],
                               "label": [IntDecoder(), ToTensor(), Squeeze()]})
    for _ in range(epochs):
        start = clock()
        count = sum(len(labels) for _, labels in loader)
        yield count / (clock() - start)


def main():
    peer, folder, size, batch, workers, epochs, work = sys.argv[1:]
    run = {"torchvision": torchvision_epochs, "torchcodec": torchcodec_epochs, "webdataset": webdataset_epochs, "dali": dali_epochs,
           "ffcv": ffcv_epochs, "spdl": spdl_epochs}[peer]
    rates = list(run(folder, int(size), int(batch), int(workers), int(epochs) + 1, work))[1:]
    print(" ".join(f"{rate:.0f}" for rate in rates))


if __name__ == "__main__":
    main()
