# SPDX-License-Identifier: BSD-2-Clause
"""What another loader makes of a folder of images, for compare_load.sh.

    peer_load.py PEER FOLDER SIZE BATCH WORKERS EPOCHS WORK
        PEER: torchvision, dali, ffcv
        prints the images a second of every epoch but the first, which warms up

Each does what its own documentation shows for ImageNet on the CPU: random crop of 8 to 100% of the area, aspect 3/4 to
4/3, resize to SIZE, flip with probability 1/2, uint8 NHWC in one batch (torchvision: what its tensors are, NCHW).
torchvision takes the better of a worker process and none. FFCV reads its own file, which it makes of FOLDER's lossless
twin (FFCV_SOURCE) as JPEG of quality 90, so that nothing is compressed twice.
"""
import os
import sys
import time

# On a machine that others use too, CLOCK=cpu counts CPU seconds of the process, threads included.
clock = time.process_time if os.environ.get("CLOCK") == "cpu" else time.perf_counter


def torchvision_epochs(folder, size, batch, workers, epochs, work):
    import torch
    from torchvision import datasets, transforms

    torch.set_num_threads(1)
    data = datasets.ImageFolder(
        folder,
        transforms.Compose([transforms.RandomResizedCrop(size), transforms.RandomHorizontalFlip(),
                            transforms.PILToTensor()]))
    loaders = [torch.utils.data.DataLoader(data, batch, shuffle=True, num_workers=n,
                                           persistent_workers=n > 0)
               for n in ([0] if clock is time.process_time else [0, 1] if workers == 1 else [workers])]
    for _ in range(epochs):
        best = 0
        for loader in loaders:
            start = clock()
            count = sum(len(labels) for _, labels in loader)
            best = max(best, count / (clock() - start))
        yield best


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
    run = {"torchvision": torchvision_epochs, "dali": dali_epochs, "ffcv": ffcv_epochs}[peer]
    rates = list(run(folder, int(size), int(batch), int(workers), int(epochs) + 1, work))[1:]
    print(" ".join(f"{rate:.0f}" for rate in rates))


if __name__ == "__main__":
    main()
