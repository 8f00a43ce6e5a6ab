# SPDX-License-Identifier: BSD-2-Clause
"""Boxes of objects against a plain reader of the same files with the same crops."""
import json
import os
import re
import shutil
import subprocess
import unittest
import warnings

import numpy

import dl2
from small_dataset import needs_torch, pillow, run, scratch, torch, write_picture

COUNT = 12
CATEGORIES = 1, 3, 90


def make(folder, flat):
    """Pictures and what COCO's file says of them: number n has n % 4 objects, one image is not there."""
    random = numpy.random.default_rng(5)
    images, annotations = [], []
    for n in range(COUNT):
        width, height = 40 + 3 * n, 60 - n
        name = f"{n:03}" if flat else f"{'ab'[n % 2]}/{n:03}"
        write_picture(f"{folder}/{name}.ppm", width, height, 0, 255, n)
        images.append({"id": 500 - n, "file_name": f"{name}.jpg", "width": width, "height": height})
        for _ in range(n % 4):
            x, y = random.uniform(-5, width - 10), random.uniform(0, height - 10)
            w, h = random.uniform(1, 40), random.uniform(1, 40)
            points = random.uniform((0, 0), (width, height), (5, 2)).round(2).ravel().tolist()
            shape = [points] if len(annotations) % 3 else {"size": [height, width], "counts": [7, 100, 50, 30, width * height - 187]}
            annotations.append({"id": len(annotations), "image_id": 500 - n, "bbox": [x, y, w, h], "area": w * h / 2,
                                "category_id": CATEGORIES[len(annotations) % 3], "iscrowd": len(annotations) % 5 // 4,
                                "segmentation": shape})
    random.shuffle(annotations)
    return {"images": images, "annotations": annotations, "categories": [{"id": c, "name": str(c)} for c in CATEGORIES]}


def expected(coco, name, shown, size, min_visibility=0):
    """What a plain reader makes of an image's annotations; shown: the crop, from batch.crop_boxes."""
    height, width = size
    left, top, right, bottom, flip = (float(value) for value in shown)
    image = next(image for image in coco["images"] if image["file_name"].rsplit(".", 1)[0] == name)
    out = {"boxes": [], "labels": [], "area": [], "iscrowd": []}
    for annotation in coco["annotations"]:
        if annotation["image_id"] != image["id"]:
            continue
        x, y, w, h = annotation["bbox"]
        x1, y1, x2, y2 = max(x, left), max(y, top), min(x + w, right), min(y + h, bottom)
        if not (x1 < x2 and y1 < y2 and (x2 - x1) * (y2 - y1) >= min_visibility * (x + w - x) * (y + h - y)):
            continue
        x1, x2 = ((value - left) * width / (right - left) for value in (x1, x2))
        y1, y2 = ((value - top) * height / (bottom - top) for value in (y1, y2))
        if flip:
            x1, x2 = width - x2, width - x1
        out["boxes"].append((x1, y1, x2, y2))
        out["labels"].append(annotation["category_id"])
        out["area"].append(annotation["area"])
        out["iscrowd"].append(annotation["iscrowd"])
    return {"boxes": numpy.array(out["boxes"], numpy.float32).reshape(-1, 4), "labels": numpy.array(out["labels"], numpy.int64),
            "area": numpy.array(out["area"], numpy.float32), "iscrowd": numpy.array(out["iscrowd"], numpy.int64),
            "image_id": image["id"]}


class Boxes(unittest.TestCase):
    def setUp(self):
        self.folder = f"{scratch.name}/{self.id()}"
        self.file = f"{self.folder}.json"
        self.coco = make(self.folder, "flat" in self.id())
        self.write(self.coco)

    def write(self, coco):
        with open(self.file, "w") as file:
            json.dump(coco, file)

    def load(self, **settings):
        return dl2.Loader(self.folder, **{"batch": 5, "split": "all", "workers": 2, "image_size": (24, 36), "boxes": self.file, **settings})

    def compare(self, batches, min_visibility=0):
        objects = 0
        keys = batches.dataset.keys
        for batch in batches:
            self.assertEqual(len(batch.boxes), len(batch.labels))
            for boxes, index, shown in zip(batch.boxes, batch.indices.tolist(), numpy.asarray(batch.crop_boxes)):
                plain = expected(self.coco, keys[index], shown, (24, 36), min_visibility)
                self.assertEqual(list(boxes), ["boxes", "labels", "image_id", "area", "iscrowd"])
                self.assertEqual(boxes["image_id"], plain["image_id"])
                for name in "labels", "iscrowd", "area":
                    theirs = numpy.asarray(boxes[name])
                    self.assertEqual(theirs.dtype, plain[name].dtype)
                    numpy.testing.assert_array_equal(theirs, plain[name])
                numpy.testing.assert_allclose(numpy.asarray(boxes["boxes"]), plain["boxes"], rtol=0, atol=1e-5)
                objects += len(plain["labels"])
        self.assertEqual(batches.stats()["boxes"], objects)
        self.assertEqual(batches.stats()["boxes_dropped"], len(self.coco["annotations"]) - objects)
        return objects

    def test_the_crops_of_a_plain_reader(self):
        counts = [self.compare(self.load(train=train, min_visibility=least, workers=workers), least)
                  for train in (True, False) for least, workers in ((0, 1), (0, 3), (0.3, 2), (1, 2))]
        self.assertTrue(18 >= counts[0] == counts[1] > counts[2] > counts[3], counts)
        whole = self.load(train=False, val_crop="squash")
        self.assertGreater(self.compare(whole), 15)

    def test_flat(self):
        self.assertGreater(self.compare(self.load(train=False, val_crop="squash")), 15)

    def test_masks(self):
        """Of the whole image, without a resize of its width: run lengths, and a pixel count of polygons within their box."""
        with self.load(train=False, val_crop="squash", image_size=(60, 80), instance_masks=True) as batches:
            for batch in batches:
                for boxes in batch.boxes:
                    masks = numpy.asarray(boxes["masks"])
                    self.assertEqual(masks.shape, (len(boxes["labels"]), 60, 80))
                    self.assertEqual(masks.dtype, numpy.uint8)
                    image = next(image for image in self.coco["images"] if image["id"] == boxes["image_id"])
                    size = height, width = image["height"], image["width"]
                    shapes = [a["segmentation"] for a in self.coco["annotations"] if a["image_id"] == image["id"]]
                    self.assertEqual(len(shapes), len(masks))
                    rows = numpy.floor((numpy.arange(60) + 0.5) * height / 60).astype(int)
                    columns = numpy.floor((numpy.arange(80) + 0.5) * width / 80).astype(int)
                    for mask, shape in zip(masks, shapes):
                        self.assertLessEqual(mask.max(), 1)
                        if isinstance(shape, dict):
                            flat = numpy.repeat(numpy.arange(len(shape["counts"])) % 2, shape["counts"])
                            whole = flat.reshape(size, order="F")
                            numpy.testing.assert_array_equal(mask, whole[rows][:, columns])

    def test_what_fits_nothing_is_said(self):
        self.coco["images"].append({"id": 9, "file_name": "c/none.jpg"})
        self.coco["annotations"] = [a for a in self.coco["annotations"] if a["image_id"] != 499] + [
            {"id": 77, "image_id": 9, "category_id": 1, "bbox": [0, 0, 4, 4]}]
        self.coco["images"] = [image for image in self.coco["images"] if image["id"] != 499]
        self.write(self.coco)
        with self.assertWarnsRegex(UserWarning, r"boxes: .*: 1 samples .* such as 'b/001'; 1 of its images, with 1 annotations, .* 'c/none.jpg'"):
            batches = self.load(train=False)
        keys = batches.dataset.keys
        ids = {keys[i]: boxes["image_id"] for batch in batches for i, boxes in zip(batch.indices.tolist(), batch.boxes)}
        self.assertEqual(ids["b/001"], -1)
        self.assertEqual(ids["a/002"], 498)
        checked = subprocess.run(["dl2-load", "check", "--boxes", self.file, "--json", f"{self.file}.out", self.folder],
                                 capture_output=True, text=True)
        self.assertEqual(checked.returncode, 1, checked.stderr)
        self.assertIn("its image 'c/none.jpg' is not among the samples", checked.stderr)
        self.assertIn("1 samples are not in the file, such as b/001", checked.stdout)
        with open(f"{self.file}.out") as file:
            facts = json.load(file)["boxes"]
        self.assertEqual((facts["images"], facts["missing"], facts["unlisted"]), (12, 1, 1))

    def test_bench_counts_them(self):
        printed = run("dl2-load", "bench", "--val", "--split", "all", "--epochs", "1", "--image-size", "24", "--boxes", self.file,
                      "--instance-masks", "--json", f"{self.file}.out", self.folder)
        with open(f"{self.file}.out") as file:
            boxes = json.load(file)["boxes"]
        self.assertEqual(boxes["loaded"] + boxes["dropped"], len(self.coco["annotations"]))
        self.assertRegex(printed, rf"boxes +{boxes['loaded']} in {COUNT} images; {boxes['dropped']} outside")

    def test_shards(self):
        """A packed container has the same boxes."""
        shards = f"{self.folder}.tar"
        subprocess.run(["tar", "-C", self.folder, "-cf", shards, "a", "b"], check=True)
        self.folder = shards
        self.assertGreater(self.compare(self.load(train=False, val_crop="squash")), 15)

    def test_a_resized_image_and_another_aspect(self):
        for image in self.coco["images"]:
            image["width"] *= 2
            image["height"] *= 2
        self.coco["images"][3]["height"] += 40
        for annotation in self.coco["annotations"]:
            annotation["bbox"] = [2 * value for value in annotation["bbox"]]
        self.write(self.coco)
        batches = self.load(train=False, val_crop="squash", max_bad=1)
        seen = [boxes for batch in batches for boxes in batch.boxes]
        self.assertEqual(sum(boxes["image_id"] == -1 for boxes in seen), 1)
        says = "the image is of 49x57, and boxes are those of one of 98x154"
        self.assertRegex(batches.bad[0], f"b/003.*decode: boxes .* {says}")
        checked = subprocess.run(["dl2-load", "check", "--boxes", self.file, self.folder], capture_output=True, text=True)
        self.assertEqual(checked.returncode, 1, checked.stderr)
        self.assertRegex(checked.stderr, f"b/003.*boxes .* {says}")
        self.assertIn("12 images, 1 bad", checked.stdout)
        self.coco["images"].pop(3)
        for annotation in self.coco["annotations"]:
            annotation["bbox"] = [value / 2 for value in annotation["bbox"]]
        for boxes in seen:
            if boxes["image_id"] != -1:
                name = next(i["file_name"][:-4] for i in self.coco["images"] if i["id"] == boxes["image_id"])
                n = int(name[-3:])
                plain = expected(self.coco, name, (0, 0, 40 + 3 * n, 60 - n, 0), (24, 36))
                numpy.testing.assert_allclose(numpy.asarray(boxes["boxes"]), plain["boxes"], rtol=0, atol=1e-5)

    def test_variants_of_other_resolutions(self):
        """Photographs, some on their side by EXIF, resized to sides that cut a pixel: folders and shards that are read in slices."""
        image = pillow()
        coco = {"images": [], "annotations": [], "categories": [{"id": 1}]}
        os.makedirs(f"{self.folder}/src/a")
        for n in range(4):
            exif = image.Exif()
            exif[0x0112] = (1, 6, 3, 8)[n]
            pixels = numpy.random.default_rng(n).integers(0, 255, (6, 8, 3), dtype=numpy.uint8)
            image.fromarray(pixels).resize((1000, 750)).save(f"{self.folder}/src/a/{n}.jpg", exif=exif)
            width, height = (750, 1000) if n % 2 else (1000, 750)
            coco["images"].append({"id": n, "file_name": f"a/{n}.jpg", "width": width, "height": height})
            for box in (0, 0, width, height), (100, 200, 300.5, 400), (width - 90, 5, 80, 70):
                coco["annotations"].append({"id": len(coco["annotations"]), "image_id": n, "category_id": 1, "iscrowd": 0,
                                            "bbox": box, "area": box[2] * box[3]})
        self.coco = coco
        self.write(coco)
        for container in "folder", "tar":
            run("dl2-transcode", "--q", "60", "--container", container, "--resize-shorter", "32,111,160,224,full", f"{self.folder}/src",
                f"{self.folder}/{container}")
            for name in "jpeg-60", *(f"jpeg-60@{short}" for short in (32, 111, 160, 224)):
                path = f"{self.folder}/{container}/{name}"
                self.assertIn(" 0 bad", run("dl2-load", "check", "--boxes", self.file, path))
                for train in False, True:
                    batches = dl2.Loader(path, 2, train=train, split="all", image_size=(24, 36), boxes=self.file, max_bad=0)
                    sizes = {image["file_name"][:-4]: (image["width"], image["height"]) for image in coco["images"]}
                    short = int(name.split("@")[1]) if "@" in name else 750
                    for batch in batches:
                        for boxes, index, shown in zip(batch.boxes, batch.indices.tolist(), numpy.asarray(batch.crop_boxes)):
                            key = batches.dataset.keys[index]
                            width, height = sizes[key]
                            small = [int(side * short / 750 + 0.5) for side in (width, height)]
                            shown = shown.astype(float)
                            shown[[0, 2]] *= width / small[0]
                            shown[[1, 3]] *= height / small[1]
                            plain = expected(coco, key, shown, (24, 36))
                            self.assertEqual(boxes["image_id"], plain["image_id"])
                            numpy.testing.assert_allclose(numpy.asarray(boxes["boxes"]), plain["boxes"], rtol=0, atol=1e-3)
                    self.assertEqual(batches.bad, [])

    def test_names_and_background(self):
        self.assertEqual(self.load().box_classes, {1: "1", 3: "3", 90: "90"})
        self.assertEqual(dl2.Loader(self.folder, 4, image_size=32, split="all").box_classes, {})
        folder = f"{self.folder}/yolo"
        for n in range(4):
            write_picture(f"{folder}/images/train/{n}.ppm", 40, 30, 0, 255, n)
        os.makedirs(f"{folder}/labels/train")
        for n in 0, 2:
            with open(f"{folder}/labels/train/{n}.txt", "w") as file:
                file.write("1 0.5 0.5 0.25 0.5\n")
        with open(f"{folder}/data.yaml", "w") as file:
            file.write("train: images/train\nval: images/val\nnames: {0: person, 1: Zürich}\n")
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            with dl2.Loader(folder, 2, image_size=32, train=False, split="all", boxes="txt") as batches:
                seen = [(boxes["labels"].tolist(), boxes["image_id"]) for batch in batches for boxes in batch.boxes]
                self.assertEqual(batches.box_classes, {0: "person", 1: "Zürich"})
                self.assertEqual((batches.bad, batches.stats()["no_label_file"]), ([], 2))
        self.assertEqual(seen, [([1], 0), ([], 1), ([1], 2), ([], 3)])
        self.assertEqual(len([w for w in told if "images have no label file: they are background" in str(w.message)]), 1)
        with self.assertRaisesRegex(dl2.Error, "none of the 4 images has a label file"):
            dl2.Loader(folder, 2, image_size=32, split="all", boxes="yolo")

    def test_refusals(self):
        for settings, says in (({"min_visibility": 0.5, "boxes": None}, "min_visibility needs boxes"),
                               ({"augment": "vflip"}, "the operation vflip of augment moves pixels"),
                               ({"frames": 2}, "boxes excludes frames"), ({"boxes": "a,b"}, "neither a file"),
                               ({"image_size": (8, 8, 8)}, "boxes has no effect on volumes"),
                               ({"boxes": "txt", "instance_masks": True}, "COCO's JSON")):
            with self.assertRaisesRegex((ValueError, dl2.Error), re.escape(says)):
                self.load(**settings)
        self.load(augment="jitter:hue=0.2,erase")
        failed = subprocess.run(["dl2-train", "--boxes", self.file, "--data", self.folder], capture_output=True, text=True)
        self.assertEqual(failed.returncode, 2)
        self.assertIn("--boxes", failed.stderr)

    def test_they_outlive_their_batch(self):
        with self.load(train=False, val_crop="squash") as batches:
            kept = next(iter(batches)).boxes[3]
            copy = numpy.array(kept["boxes"])
            for _ in range(2):
                for _ in batches:
                    pass
        numpy.testing.assert_array_equal(numpy.asarray(kept["boxes"]), copy)
        self.assertGreater(len(copy), 0)

    @needs_torch
    def test_torch(self):
        import dl2.torch
        batches = dl2.torch.Loader(self.folder, 5, image_size=32, train=False, split="all", boxes=self.file, instance_masks=True, workers=2)
        images = objects = 0
        for pixels, targets in batches:
            self.assertEqual(pixels.shape[0], len(targets))
            for target in targets:
                count = len(target["boxes"])
                self.assertEqual(sorted(target), ["area", "boxes", "image_id", "iscrowd", "labels", "masks"])
                self.assertEqual((target["boxes"].dtype, tuple(target["boxes"].shape)), (torch.float32, (count, 4)))
                self.assertEqual((target["labels"].dtype, target["iscrowd"].dtype, target["area"].dtype), (torch.int64, torch.int64, torch.float32))
                self.assertEqual((target["masks"].dtype, tuple(target["masks"].shape)), (torch.uint8, (count, 32, 32)))
                self.assertIsInstance(target["image_id"], int)
                objects += count
            images += len(targets)
        self.assertEqual(images, COUNT)
        self.assertGreater(objects, 10)
        for wrong in {"mixup": 0.2}, {"labels": list(range(COUNT))}:
            with self.assertRaisesRegex(ValueError, "leave it out with boxes"):
                dl2.torch.Loader(self.folder, 5, image_size=32, train=True, split="all", boxes=self.file, **wrong)

    @needs_torch
    def test_a_network_for_detection(self):
        """The example of docs/python.md, small: torchvision's network normalizes the images, and learns."""
        try:
            from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn
        except ImportError:
            self.skipTest("no torchvision (Debian: python3-torchvision)")
        import dl2.torch
        torch.manual_seed(1)
        network = fasterrcnn_mobilenet_v3_large_320_fpn(weights=None, weights_backbone=None, num_classes=91, min_size=64, max_size=64,
                                                         rpn_post_nms_top_n_train=32, box_batch_size_per_image=8)
        optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
        seen = []
        network.transform.register_forward_pre_hook(lambda module, given: seen.extend(given[0]))
        batches = dl2.torch.Loader(self.folder, 4, image_size=64, split="all", boxes=self.file, min_visibility=0.3, area=(0.3, 1),
                                   mean=None, std=None)
        before = [parameter.clone() for parameter in network.parameters()]
        for images, targets in batches:
            loss = sum(network(list(images), targets).values())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            self.assertTrue(torch.isfinite(loss))
        self.assertTrue(any(not torch.equal(*pair) for pair in zip(before, network.parameters())))
        self.assertEqual(len(seen), COUNT)
        self.assertTrue(all(0 <= image.min() and 0.5 < image.max() <= 1 for image in seen))


if __name__ == "__main__":
    unittest.main()
