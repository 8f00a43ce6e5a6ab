# SPDX-License-Identifier: BSD-2-Clause
"""test_hub.py DL2-HUB: shards and twins of Parquet files have every value and every row of them, or a message says what they lack."""
import base64
import contextlib
import datetime
import glob
import http.server
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
import threading
import time
import types
import unittest
import urllib.parse

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

HUB = [sys.executable, sys.argv.pop(1)]
module = types.ModuleType("hub")  # the program, for the many calls that need no process
with open(HUB[1], encoding="utf-8") as program:
    exec(compile(program.read(), HUB[1], "exec"), module.__dict__)
CLASSES = ["rose", "aster", "test"]  # not in the order of the alphabet; the last one is no name for a folder
FEATURES = datasets.Features({
    "image": datasets.Image(), "label": datasets.ClassLabel(names=CLASSES), "id": datasets.Value("string"),
    "caption": datasets.Value("large_string"), "when": datasets.Value("timestamp[us, tz=UTC]"),
    "meta": {"width": datasets.Value("int32"), "tags": datasets.List(datasets.Value("string"))},
    "boxes": datasets.List({"bbox": datasets.List(datasets.Value("float32"), length=4), "of": datasets.ClassLabel(names=["x", "y"])}),
    "thumb": datasets.Image(), "views": datasets.List(datasets.Image()), "score": datasets.Value("float64"),
    "blob": datasets.Value("binary"), "kind": datasets.Value("string")})


def encoded(number, form, side=32, **settings):
    pixels = Image.radial_gradient("L").resize((side + number % 5, side)).convert("RGB").rotate(number * 7)
    pixels = Image.merge("RGB", [band.point(lambda v, k=k: (v * (k + 3) + number * 11) % 256) for k, band in enumerate(pixels.split())])
    out = io.BytesIO()
    pixels.save(out, form, **settings)
    return out.getvalue()


JPEGS = [encoded(i, "jpeg", quality=92 if i % 6 else 20) for i in range(25)]
PNGS = [encoded(i, "png") for i in range(25)]
SMALL = [encoded(i, "png", 16) for i in range(25)]


def row(i):
    is_jpeg = i % 3
    image = {"bytes": (JPEGS if is_jpeg else PNGS)[i % 25], "path": f"p{i}.{'jpg' if is_jpeg else 'png'}" if i % 4 else None}
    return {"image": image if i % 17 != 5 else None, "label": None if i % 13 == 7 else -1 if i % 13 == 8 else i % 3, "id": f"é{i}",
            "caption": "long " * (i % 9), "when": datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc) +
            datetime.timedelta(microseconds=i), "meta": {"width": i, "tags": [None, "b"][:i % 3]} if i % 5 else None,
            "boxes": [{"bbox": [0, 1, 2, i], "of": i % 2}] * (i % 3), "thumb": {"bytes": SMALL[i % 25], "path": None} if i % 4 else None,
            "views": [{"bytes": JPEGS[(i + k) % 25], "path": f"v{k}.jpeg"} if k != 1 else None for k in range(i % 4)] if i % 7 else None,
            "score": None if i % 6 == 0 else i / 3, "blob": b"\0\xff" * (i % 4), "kind": ["big", "small"][i % 2]}


def write(path, rows, schema=FEATURES.arrow_schema, group=100, by_datasets=False, **settings):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    schema = schema.set(11, pa.field("kind", pa.dictionary(pa.int32(), pa.string()))) if "kind" in schema.names else schema
    with pq.ParquetWriter(path, schema, use_content_defined_chunking=True, write_page_index=True, **settings) as writer:
        for at in range(0, len(rows), group):
            writer.write_table(pa.Table.from_pylist(rows[at:at + group], schema), row_group_size=group)
        if by_datasets:  # which adds this to the metadata, and not to Arrow's schema
            writer.add_key_value_metadata({"content_defined_chunking": json.dumps(
                {"min_chunk_size": 1 << 18, "max_chunk_size": 1 << 20, "norm_level": 0})})


def flowers(folder, count):
    """Three splits, train in two files; a card beside them."""
    rows = [row(i) for i in range(count)]
    parts = {"train-00000-of-00002": rows[:count // 2], "train-00001-of-00002": rows[count // 2:count * 8 // 10],
             "validation-00000-of-00001": rows[count * 8 // 10:count * 9 // 10], "test-00000-of-00001": rows[count * 9 // 10:]}
    for name, part in parts.items():
        write(f"{folder}/data/{name}.parquet", part, by_datasets=True)
    with open(f"{folder}/README.md", "w", encoding="utf-8") as file:
        file.write("---\nlicense: cc-by-4.0\nconfigs:\n- config_name: default\n  data_files:\n" + "".join(
            f"  - split: {split}\n    path: data/{split}-*\n" for split in ("train", "validation", "test")) + "---\n# Flowers\n\nOf a garden.\n")
    return {"train": rows[:count * 8 // 10], "validation": rows[count * 8 // 10:count * 9 // 10], "test": rows[count * 9 // 10:]}


def process(*arguments, status=0, **environment):
    done = subprocess.run([*HUB, *arguments], capture_output=True, text=True, check=False, env={**os.environ, **environment})
    assert done.returncode == status, f"exit status {done.returncode}, not {status}: {arguments}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def hub(*arguments, status=0):
    said, sys.argv[:], got = io.StringIO(), [HUB[1], *arguments], 0
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            got = module.main() or 0
        except SystemExit as end:
            got = end.code if isinstance(end.code, int) else print(end.code) or 1
    assert got == status, f"exit status {got}, not {status}: {arguments}\n{said.getvalue()}"
    return said.getvalue()


def members(folder):
    """The samples of shards in order: [(key, {extension: bytes})]."""
    samples = []
    for path in sorted(glob.glob(f"{folder}/*.tar")):
        with tarfile.open(path) as shard:
            for member in shard:
                where, name = os.path.split(member.name)
                number, extension = name.split(".", 1)
                key = os.path.join(where, number)
                if not samples or samples[-1][0] != key:
                    samples.append((key, {}))
                samples[-1][1][extension] = shard.extractfile(member).read()
    return samples


def contents(folder, *without):
    found = {}
    for parent, _, names in os.walk(folder):
        for name in sorted(set(names) - set(without)):
            with open(os.path.join(parent, name), "rb") as file:
                found[os.path.relpath(os.path.join(parent, name), folder)] = file.read()
    return found


def images_in(value):
    """The images' bytes below a value, in order."""
    if isinstance(value, dict) and set(value) == {"bytes", "path"}:
        return [value["bytes"]]
    return [image for inner in value for image in images_in(inner)] if isinstance(value, list) else []


SPLITS = flowers("flowers", 5000)


class Get(unittest.TestCase):
    def test_every_value(self):
        """5,000 rows with 12 columns keep their number, order and values."""
        splits = SPLITS
        said = hub("get", "flowers", "shards", "--shard", "2")
        self.assertIn("images: column image; classes: label; beside each image: thumb, views[]", said)
        for split, rows in splits.items():
            self.assertIn(f"shards/{split}: {len(rows)} rows, {sum(r['image'] is not None for r in rows)} images", said)
            samples = members(f"shards/{split}")
            self.assertEqual([int(os.path.basename(key)) for key, _ in samples], list(range(len(rows))))
            with open(f"shards/{split}/classes.txt", encoding="utf-8") as file:
                self.assertEqual(file.read().split("\n"), CLASSES + [""])
            for (key, found), of in zip(samples, rows):
                values = json.loads(found.pop("json"))
                image, label = of["image"], of["label"]
                if image:
                    self.assertEqual(found.pop("jpg" if image["bytes"][:1] == b"\xff" else "png"), image["bytes"])
                if label in (None, -1):
                    self.assertEqual(values.pop("label"), label)
                else:
                    self.assertEqual(found.pop("cls"), str(label).encode())
                self.assertEqual(os.path.dirname(key), CLASSES[label] if label in (0, 1) else "")
                if of["thumb"]:
                    self.assertEqual(found.pop("thumb.png"), of["thumb"]["bytes"])
                else:
                    self.assertIsNone(values.pop("thumb"))
                for k, view in enumerate(of["views"] or []):
                    if view:
                        self.assertEqual(found.pop(f"views.{k}.jpg"), view["bytes"])
                self.assertEqual(found, {})
                wanted = {name: of[name] for name in ("id", "caption", "meta", "boxes", "score", "kind")}
                wanted["when"] = of["when"].isoformat()
                wanted["blob"] = base64.b64encode(of["blob"]).decode()
                wanted["views"] = of["views"] and [view and view["path"] for view in of["views"]]
                if not image or image["path"]:
                    wanted["image"] = image and image["path"]
                self.assertEqual(values, json.loads(json.dumps(wanted)))
        checked = subprocess.run(["dl2-load", "check", "shards"], capture_output=True, text=True, check=False)
        self.assertEqual(checked.returncode, 0, checked.stderr)
        images = sum(r["image"] is not None for rows in splits.values() for r in rows)
        self.assertIn(f"shards: {images} images, 0 bad", checked.stdout)
        before = contents("shards")
        self.assertEqual(hub("get", "flowers", "shards", "--shard", "2"), said)  # and makes nothing anew
        self.assertEqual(contents("shards"), before)
        self.assertIn("was made of flowers with other shard", hub("get", "flowers", "shards", "--shard", "3", status=1))

    def one(self, rows, *arguments, name="one", status=0, schema=None, **settings):
        """What becomes of a file of these rows: the samples, and what is said."""
        shutil.rmtree(name, ignore_errors=True)
        table = pa.Table.from_pylist(rows, schema)
        os.mkdir(name)
        pq.write_table(table, f"{name}/x.parquet", **settings)
        said = hub("get", f"{name}/x.parquet", f"{name}/shards", *arguments, status=status)
        return members(f"{name}/shards"), said

    def test_what_is_an_image(self):
        png, jpeg = PNGS[0], JPEGS[0]
        samples, said = self.one([{"picture": jpeg, "n": 1}, {"picture": None, "n": 2}, {"picture": png, "n": 3}])  # binary
        self.assertEqual([sorted(found) for _, found in samples], [["jpg", "json"], ["json"], ["json", "png"]])
        self.assertIn("no column has one class a row", said)
        self.assertIn("1 rows have no image; the first: x.parquet, row 1", said)
        samples, said = self.one([{"pages": [{"bytes": png, "path": None}, {"bytes": jpeg, "path": "b.jpg"}]}, {"pages": []}])  # lists
        self.assertEqual([sorted(found) for _, found in samples], [["json", "pages.1.jpg", "png"], ["json"]])
        samples, _ = self.one([{"a": {"b": [{"c": {"bytes": jpeg, "path": None}, "d": 7}]}}, {"a": None}, {"a": {"b": None}}])  # nested
        self.assertEqual([found.get("jpg") for _, found in samples], [jpeg, None, None])
        self.assertEqual(json.loads(samples[0][1]["json"]), {"a": {"b": [{"c": None, "d": 7}]}})
        samples, said = self.one([{"image": jpeg, "a.b/c": png}, {"image": None, "a.b/c": png}])  # a name that no member can have
        self.assertEqual(sorted(samples[0][1]), ["a%2Eb%2Fc.png", "jpg"])
        listed = subprocess.run(["dl2-transcode", "identify", "one/shards"], capture_output=True, text=True, check=True).stdout
        self.assertIn("\nimages\t1\n", listed)  # the second row's other image is not taken for the first
        samples, said = self.one([{"image": jpeg, "label": 0}, {"image": b"no image", "label": 1}, {"image": b"", "label": 1}])
        self.assertEqual([sorted(found) for _, found in samples], [["cls", "jpg"], ["bin", "cls"], ["bin", "cls"]])
        self.assertIn("2 rows have bytes of no known format, and are kept as .bin; the first: x.parquet, row 1, begins with 6e 6f", said)
        _, said = self.one([{"image": "http://127.0.0.1/a.jpg", "label": 0}], status=1)  # addresses
        self.assertIn("(image may hold their addresses, which are not followed)", said)
        _, said = self.one([{"label": 0, "audio": {"bytes": b"RIFF0000WAVE", "path": "a.wav"}}], status=1)
        self.assertIn("has no column of images: none of label, audio holds bytes", said)
        _, said = self.one([{"image": jpeg, "label": [0, 1]}], "--label", "label", status=1)
        self.assertIn("--label label: it is list<", said)
        samples, _ = self.one([{"image": jpeg, "of": {"class": "rose"}}], "--label", "of.class")
        self.assertEqual((samples[0][0], samples[0][1]["cls"]), ("rose/000000000", b"rose"))

    def test_paths(self):
        rows = [{"image": {"bytes": None, "path": path}, "label": 0}
                for path in ("a.png", "sub/a.png", "sub/../../secret.png", "gone.png", "http://127.0.0.1/a.png", "a.png")]
        os.makedirs("paths/sub", exist_ok=True)
        for path in ("paths/a.png", "paths/sub/a.png", "secret.png"):
            with open(path, "wb") as file:
                file.write(PNGS[len(path) % 25])
        write("paths/x.parquet", rows, pa.schema({"image": pa.struct({"bytes": pa.binary(), "path": pa.string()}), "label": pa.int8()}))
        said = hub("get", "paths", "paths-shards")
        self.assertEqual([found.get("png") for _, found in members("paths-shards")],
                         [PNGS[11], PNGS[15], None, None, None, PNGS[11]])
        self.assertIn("3 rows name an image that is not beside the Parquet file; the first: x.parquet, row 2: sub/../../secret.png", said)

    def test_broken_files(self):
        rows = [{"image": jpeg, "label": 0} for jpeg in JPEGS]
        os.makedirs("broken", exist_ok=True)

        def broken(change, *arguments, **settings):
            pq.write_table(pa.Table.from_pylist(rows), "broken/x.parquet", **settings)
            with open("broken/x.parquet", "rb") as file:
                data = bytearray(file.read())
            data = change(data) or data
            with open("broken/x.parquet", "wb") as file:
                file.write(data)
            shutil.rmtree("broken-shards", ignore_errors=True)
            return hub("get", "broken/x.parquet", "broken-shards", *arguments, status=1)

        self.assertIn("x.parquet cannot be read as Parquet", broken(lambda data: data[:-20]))
        self.assertIn("x.parquet cannot be read as Parquet", broken(lambda data: b"no Parquet"))
        self.assertIn("x.parquet cannot be read as Parquet", broken(lambda data: data[:-4] + b"PARE"))  # as encrypted files end

        def zero(data):
            data[2000:2400] = bytes(400)
        self.assertIn("row group 0 cannot be read", broken(zero, row_group_size=5, compression="gzip"))
        with open("dl2", "w", encoding="utf-8") as file:
            file.write("no folder")
        self.assertIn("nowhere is not there", hub("get", "nowhere", "x", status=1))
        self.assertIn("dl2 is there already", hub("get", "flowers", "dl2", status=1))
        os.makedirs("texts", exist_ok=True)
        with open("texts/a.csv", "w", encoding="utf-8") as file:
            file.write("a,b\n")
        self.assertIn("texts has no Parquet files; it has a.csv", hub("get", "texts", "x", status=1))
        for name, features in {"a": {"image": pa.binary()}, "b": {"image": pa.binary(), "label": pa.int64()}}.items():
            write(f"mixed/{name}.parquet", [{"image": JPEGS[0], "label": 0}], pa.schema(features))
        self.assertRegex(hub("get", "mixed", "x", status=1), "mixed/b.parquet has other columns than .*/mixed/a.parquet: .*label: int64")
        twice = pa.table([pa.array([JPEGS[0]]), pa.array([1]), pa.array([2])], ["image", "n", "n"])
        pq.write_table(twice, "broken/x.parquet")
        self.assertIn("two columns of the name 'n'", hub("get", "broken/x.parquet", "y", status=1))
        odd = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")])
        pq.write_table(pa.table({"image": [JPEGS[0]], "text": odd}), "broken/x.parquet")
        self.assertIn("x.parquet, rows from 0 on, column text: 'utf-8' codec", hub("get", "broken/x.parquet", "z", status=1))
        names = pa.StructArray.from_arrays([pa.array([JPEGS[0]]), odd], ["bytes", "path"])
        pq.write_table(pa.table({"image": names}), "broken/x.parquet")
        for command in (["get"], ["twin"]):
            self.assertIn("x.parquet, rows from 0 on, column image: 'utf-8' codec", hub(*command, "broken/x.parquet", "v" + command[0], status=1))
        write("range/x.parquet", [{"image": JPEGS[0], "label": 5}], pa.schema({"image": pa.binary(), "label": pa.int64()},
              metadata=datasets.Features({"label": datasets.ClassLabel(names=CLASSES)}).arrow_schema.metadata))
        self.assertIn("x.parquet, row 0 has label 5, but there are 3 classes", hub("get", "range", "w", status=1))

    def test_splits_and_cards(self):
        schema = pa.schema({"image": pa.binary(), "label": pa.int64()})
        for path in ("a/train-0.parquet", "a/dev.parquet", "b/one.parquet"):
            write(f"card/{path}", [{"image": JPEGS[0], "label": 1}], schema)
        self.assertIn("files in several folders", hub("get", "card", "x", status=1))
        self.assertIn("no card that names configurations", hub("get", "card", "x", "--config", "b", status=1))
        with open("card/README.md", "w", encoding="utf-8") as file:
            file.write("""---
configs:
- config_name: a
  data_dir: a
- config_name: b
  data_files:
  - split: holdout
    path: b/*.parquet
dataset_info:
- config_name: b
  features:
  - name: image
    dtype: image
  - name: label
    dtype:
      class_label:
        names:
          '1': aster
          '0': rose
---
""")
        self.assertIn("has the configurations a, b: choose one by --config", hub("get", "card", "x", status=1))
        hub("get", "card", "card-a", "--config", "a")
        self.assertEqual(sorted(os.listdir("card-a")), [".dl2-hub", "dl2-index.bin", "train", "validation"])
        hub("get", "card", "card-b", "--config", "b")
        self.assertEqual([key for key, _ in members("card-b")], ["aster/000000000"])  # one split, whose classes the card names
        self.assertIn("has no split test, but validation, train", hub("get", "card", "x", "--config", "a", "--split", "test", status=1))
        with open("card/README.md", "w", encoding="utf-8") as file:
            file.write("---\nconfigs:\n- config_name: a\n  data_files:\n  - split: ../up\n    path: a/*\n---\n")
        self.assertIn("has a split or a file of the name '../up'", hub("get", "card", "x", status=1))
        for odd in (": [", "configs: [1]", "configs: [{data_files: [{}]}]", "configs: [{data_dir: a}]\ndataset_info: [null]"):
            with open("card/README.md", "w", encoding="utf-8") as file:
                file.write(f"---\n{odd}\n---\n")
            self.assertIn("card/README.md is not as `datasets` writes it: ", hub("get", "card", "x", status=1))
        write("card/c/one.parquet", [{"image": JPEGS[0], "label": 1}], schema.with_metadata({"huggingface": "[]"}))
        self.assertIn("one.parquet, huggingface in its schema, is not as", hub("get", "card/c", "x", status=1))
        hub("twin", "card/a/../b/*.parquet", "card-d", "--q", "30")
        self.assertEqual(sorted(os.listdir("card-d")), ["README.md", "dl2-twin.json", "one.parquet"])
        hub("get", "card/a/*.parquet", "card-c")
        self.assertEqual(sorted(glob.glob("card-c/*/*.tar")), ["card-c/train/shard-000000.tar", "card-c/validation/shard-000000.tar"])

    def test_a_row_group_of_2_gib_by_its_header(self):
        """It is read as it is: by its columns, a few rows at a time."""
        rows = [{"image": jpeg, "label": 0} for jpeg in JPEGS]
        write("large/x.parquet", rows, pa.schema({"image": pa.binary(), "label": pa.int64()}), compression="none")
        with open("large/x.parquet", "rb") as file:
            data = file.read()
        sizes = pq.ParquetFile("large/x.parquet").metadata.row_group(0)
        self.assertEqual(sizes.num_rows, 25)
        footer = int.from_bytes(data[-8:-4], "little")

        def varint(value):
            value, out = value << 1, b""
            while value > 127:
                out, value = out + bytes([value & 127 | 128]), value >> 7
            return out + bytes([value])
        old = varint(sizes.total_byte_size)
        meta = data[-8 - footer:-8].replace(old, varint(1 << 31))
        self.assertNotEqual(len(meta), footer)
        with open("large/x.parquet", "wb") as file:
            file.write(data[:-8 - footer] + meta + len(meta).to_bytes(4, "little") + b"PAR1")
        self.assertGreaterEqual(pq.ParquetFile("large/x.parquet").metadata.row_group(0).total_byte_size, 1 << 31)
        hub("get", "large", "large-shards")
        self.assertEqual([found["jpg"] for _, found in members("large-shards")], JPEGS)


def opened(folder):
    """A dataset as `datasets` has it, with encoded images."""
    data = datasets.load_dataset(folder, cache_dir="cache")
    features = data["train"].features.copy()
    for name in ("image", "thumb"):
        features[name] = datasets.Image(decode=False)
    features["views"] = datasets.List(datasets.Image(decode=False))
    return data, data.cast(features)


def transcode(*arguments):
    subprocess.run(["dl2-transcode", "--quiet", *arguments], check=True, capture_output=True)


class Twin(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        flowers("others", 600)

    def test_by_datasets(self):
        """Every value but images' bytes, schema, features, splits and row groups are the source's; images are dl2-transcode's."""
        said = hub("twin", "flowers", "twin", "--image", "image,views[]", "--codec", "jpeg", "--q", "30")
        self.assertIn("columns of images that stay as they are: thumb;", said)
        source, twin = opened("flowers"), opened("twin")
        self.assertEqual(source[0]["train"].features, twin[0]["train"].features)
        self.assertEqual({k: len(v) for k, v in twin[0].items()}, {k: len(v) for k, v in SPLITS.items()})
        images, kept = {}, 0
        for split in SPLITS:
            for old, new in zip(source[1][split], twin[1][split]):
                for before, after in zip([old.pop("image"), *(old.pop("views") or [])], [new.pop("image"), *(new.pop("views") or [])]):
                    self.assertEqual(before is None, after is None)
                    if before:
                        kept += before["bytes"] == after["bytes"]
                        self.assertEqual(images.setdefault(before["bytes"], after["bytes"]), after["bytes"])
                        path = before["path"] and re.sub("png$", "jpg", before["path"])
                        self.assertEqual(path, after["path"])
                self.assertEqual(old, new)
        os.makedirs("plain/a")
        for i, data in enumerate(images):
            with open(f"plain/a/{i}.{module.format_of(data)}", "wb") as file:
                file.write(data)
        transcode("--codec", "jpeg", "--q", "30", "plain", "plain-made")
        with open("plain-made/jpeg-30/dl2-variant.jsonl", encoding="utf-8") as lines:
            copied = {json.loads(line)["key"] for line in lines if json.loads(line).get("copied")}
        self.assertEqual(len(copied), 5)
        for i, (before, after) in enumerate(images.items()):
            with open(f"plain-made/jpeg-30/a/{i}.jpg", "rb") as file:
                self.assertEqual(after, before if f"a/{i}" in copied else file.read())
        total = sum(len(images_in(r["image"])) + len([v for v in r["views"] or [] if v]) for rows in SPLITS.values() for r in rows if r["image"])
        total += sum(len([v for v in r["views"] or [] if v]) for rows in SPLITS.values() for r in rows if not r["image"])
        self.assertIn(f"twin: jpeg-30: {total} images, {total - kept} encoded, {kept} as they were", said)
        for path in glob.glob("flowers/data/*"):
            old, new = pq.ParquetFile(path), pq.ParquetFile(path.replace("flowers", "twin"))
            self.assertTrue(new.schema_arrow.equals(old.schema_arrow, True) and new.schema.equals(old.schema))
            self.assertEqual(*([f.metadata.row_group(i).num_rows for i in range(f.num_row_groups)] for f in (old, new)))
            self.assertTrue(new.metadata.row_group(0).column(0).has_offset_index)
        with open("twin/README.md", encoding="utf-8") as file:
            card = file.read()
        self.assertTrue(card.startswith("---\nlicense: cc-by-4.0\nconfigs:\n") and card.endswith("## The source's card\n\n# Flowers\n\nOf a garden.\n"))
        before = contents("twin")
        self.assertEqual(hub("twin", "flowers", "twin", "--image", "image,views[]", "--codec", "jpeg", "--q", "30"), said)
        self.assertEqual(contents("twin"), before)
        self.assertIn("twin has a twin of other files, by other options", hub("twin", "flowers", "twin", "--codec", "webp", "--q", "30", status=1))

    def test_options(self):
        said = hub("twin", "flowers", "x", "--codec", "jpeg,webp", "--q", "30", status=1)
        self.assertIn("a twin has one variant, and --codec jpeg,webp --q 30 makes jpeg-30, webp-30", said)
        self.assertIn("SOURCE and DEST come first", hub("twin", "--codec", "jpeg", "flowers", "x", status=2))
        self.assertIn("has no such options: --container=gulp", hub("twin", "flowers", "x", "--container=gulp", status=2))
        self.assertIn("has no such options: --q 3", hub("get", "flowers", "x", "--q", "3", status=2))
        self.assertFalse(os.path.exists("x"))
        os.mkdir("alone")
        shutil.copy(HUB[1], "alone")
        said = subprocess.run([sys.executable, "alone/dl2-hub", "--version"], capture_output=True, text=True, check=False, env={"PATH": ""})
        self.assertEqual(said.stderr, "dl2-hub: dl2-transcode is neither beside dl2-hub nor on the PATH\n")

    def test_forms_of_parquet(self):
        """Files of other programs, whose schema no default of pyarrow's gives; empty ones, too."""
        kinds = {"image": pa.binary(), "n": pa.list_(pa.int32()), "t": pa.timestamp("ns"), "d": pa.dictionary(pa.int32(), pa.string()),
                 "m": pa.map_(pa.string(), pa.int8()), "f": pa.list_(pa.float32(), 2), "x": pa.float64()}
        rows = [{"image": JPEGS[1] if i % 2 else None, "n": [i, None] if i % 3 else None, "t": i * 1000, "d": "ab"[i % 2],
                 "m": [("k", i)], "f": [i, i], "x": float("nan") if i % 2 else i / 7} for i in range(50)]
        for number, (count, settings) in enumerate([
                (50, {"use_compliant_nested_type": False, "compression": "gzip"}), (50, {"version": "1.0", "store_schema": False}),
                (50, {"use_deprecated_int96_timestamps": True, "compression": "none"}), (50, {"use_dictionary": False, "version": "2.4"}),
                (0, {"compression": "zstd"})]):
            table = pa.Table.from_pylist(rows[:count], pa.schema(kinds, metadata={"a": "b"}))
            os.makedirs(f"forms/{number}")
            pq.write_table(table, f"forms/{number}/x.parquet", row_group_size=7, **settings)
            if not count:
                self.assertIn("has no column of images", hub("twin", f"forms/{number}", f"forms-twin/{number}", "--q", "30", status=1))
                continue
            hub("twin", f"forms/{number}", f"forms-twin/{number}", "--q", "30")
            old, new = (pq.ParquetFile(f"{name}/{number}/x.parquet") for name in ("forms", "forms-twin"))
            self.assertTrue(new.schema.equals(old.schema) and new.schema_arrow.equals(old.schema_arrow, True))
            self.assertEqual(*(f.metadata.row_group(0).column(1).compression for f in (old, new)))
            self.assertEqual(*(repr(f.read().drop(["image"]).to_pydict()) for f in (old, new)))
            self.assertIn("50 rows and 25 images are as the card says", hub("verify", f"forms-twin/{number}", f"forms/{number}"))

    def test_images_that_stay(self):
        rows = [{"image": {"bytes": data, "path": path}} for data, path in (
            (JPEGS[1], "a.jpeg"), (JPEGS[2][:300], "cut.jpg"), (b"no image", "b.png"), (None, "elsewhere.png"), (PNGS[1], "c.PNG"),
            (PNGS[2], "c.txt"), (JPEGS[1], "a.jpeg"))] + [{"image": None}]
        write("stay/x.parquet", rows, pa.schema({"image": pa.struct({"bytes": pa.binary(), "path": pa.string()})}))
        said = hub("twin", "stay", "stay-twin", "--codec", "webp", "--q", "30", status=1)
        self.assertRegex(said, "2 images stay as they are because they cannot be encoded; the first: x.parquet, row 1, column image: .*")
        images = [r["image"] for r in pq.read_table("stay-twin/x.parquet").to_pylist()]
        self.assertEqual([r and r["path"] for r in images], ["a.webp", "cut.jpg", "b.png", "elsewhere.png", "c.webp", "c.txt", "a.webp", None])
        self.assertEqual([r and r["bytes"] and r["bytes"][8:12] for r in images],
                         [b"WEBP", JPEGS[2][8:12], b"no image"[8:12], None, b"WEBP", b"WEBP", b"WEBP", None])
        hub("verify", "stay-twin", "stay")
        table = pq.read_table("stay-twin/x.parquet")  # an image that stays as it cannot be encoded excuses no other
        images[0]["bytes"] = encoded(1, "webp", 40)
        pq.write_table(pa.Table.from_pylist([{"image": image} for image in images], table.schema), "stay-twin/x.parquet", write_page_index=True)
        self.assertIn("stay-twin/x.parquet, image 0: ", hub("verify", "stay-twin", "stay", status=1))

    def test_of_a_variant(self):
        hub("get", "others", "for-variant")
        transcode("--container=tar", "--q", "30", "for-variant", "variants")
        hub("twin", "others", "of-variant", "--variant", "variants/jpeg-30")
        usual, module.UNIT_BYTES = module.UNIT_BYTES, 100000  # several times a file, without a change
        hub("twin", "others", "of-options", "--codec", "jpeg", "--q", "30")
        module.UNIT_BYTES = usual
        for path in glob.glob("of-options/data/*"):
            with open(path, "rb") as one, open(path.replace("options", "variant"), "rb") as other:
                self.assertEqual(one.read(), other.read(), path)
        flowers("different", 300)
        self.assertIn("the variant was made of one of", hub("twin", "different", "y", "--variant", "variants/jpeg-30", status=1))
        for container in ("gulp", "folder"):
            hub("get", "others", f"of-{container}", "--label", "kind")  # words, in the order of folders
            transcode(f"--container={container}", "--q", "30", f"of-{container}", f"{container}-variants")
            hub("twin", "others", f"{container}-twin", "--variant", f"{container}-variants/jpeg-30")
            self.assertIn("600 rows and", hub("verify", f"{container}-twin", "others"))
        os.remove("gulp-variants/jpeg-30/dl2-variant.json")
        self.assertIn("is no variant of dl2-transcode on this machine", hub("twin", "others", "z", "--variant", "gulp-variants/jpeg-30", status=1))

    def study(self, scores, **changes):
        """A study's files with the figures of the twin of-study."""
        with open("of-study/dl2-twin.json", encoding="utf-8") as file:
            counts = json.load(file)["images"]
        sizes = {"raw": {"images": counts["images"], "bytes": counts["source_bytes"]}, "webp-20": {
            "images": counts["images"], "bytes": counts["bytes"], "psnr_rgb": float(scores[1]), "ssim": float(scores[2]), **changes}}
        results = {"raw": {"accuracy": 80.5}, "webp-20": {"accuracy": 79.75, "difference": -0.75, "interval": [-0.9, -0.6], "seeds": 4, "verdict": "within"}}
        os.makedirs("study/report", exist_ok=True)
        for name, content in (("report/answer.json", {"schema": "dl2-answer/1", "accuracy": "top-1", "tolerance": 1, "notes": [], "variants": sizes, "networks": {
                "resnet10": {"smallest": {"text": "Use webp-20: it loses less than 1 point."}, "open": "Nothing is open.", "variants": results}}}),
                ("study-plan.json", {"settings": {"archs": ["resnet10"], "epochs": "30"}})):
            with open(f"study/{name}", "w", encoding="utf-8") as file:
                json.dump(content, file)

    def test_certificate(self):
        command = ["twin", "others", "of-study", "--codec", "webp", "--q", "20"]
        hub(*command)
        scores = re.search("mean psnr_rgb ([0-9.]*), mean ssim ([0-9.]*)", hub("verify", "of-study", "others"))
        self.study(scores)
        hub(*command, "--study", "study")
        with open("of-study/README.md", encoding="utf-8") as file:
            card = file.read()
        self.assertIn("\nUse webp-20: it loses less than 1 point.\nNothing is open.\n", card)
        self.assertIn("| resnet10 | 4 | 80.50 | 79.75 | -0.75 | -0.90 to -0.60 | within |", card)
        self.assertIn("are as the card says", hub("verify", "of-study", "others"))
        self.study(scores, ssim=0.5)
        hub(*command, "--study", "study")
        self.assertIn("the card says a mean ssim of 0.5, and it is 0.", hub("verify", "of-study", "others", status=1))
        self.study(scores, bytes=7)
        self.assertIn("is about other images: its webp-20 has 7 bytes", hub(*command, "--study", "study", status=1))

    def test_verify(self):
        write("true/x.parquet", [row(i) for i in range(100)])
        hub("twin", "true", "false", "--q", "30")
        self.assertIn("100 rows and 94 images are as the card says", hub("verify", "false", "true"))
        table = pq.read_table("false/x.parquet")
        rows = table.to_pylist()

        def changed(change):
            new = [dict(r) for r in rows]
            change(new)
            pq.write_table(pa.Table.from_pylist(new, table.schema), "false/x.parquet", row_group_size=100, write_page_index=True)
            said = hub("verify", "false", "true", status=1)
            self.assertIn("has another check sum than the card says", said)
            return said
        self.assertIn("has other values than its source in column id, rows from 0 on", changed(lambda new: new[7].update(id="x")))
        self.assertIn("in column caption", changed(lambda new: new.reverse()))
        self.assertIn("another division into row groups", changed(lambda new: new.pop()))
        self.assertIn("in column image", changed(lambda new: new[7].update(image=None)))
        self.assertRegex(changed(lambda new: new[7].update(image={"bytes": encoded(7, "jpeg", 40), "path": rows[7]["image"]["path"]})), "image 6: .*is 42x40 pixels, its reference 34x32")
        self.assertIn("in column thumb", changed(lambda new: new[7].update(thumb={"bytes": SMALL[9], "path": None})))
        os.remove("false/x.parquet")
        self.assertIn("false/x.parquet is not there", hub("verify", "false", "true", status=1))


class Kills(unittest.TestCase):
    """A command that was killed at any moment ends with the same bytes when it is run again."""

    def kill(self, made, name, source, *options):
        def command(dest):
            return [name, source, dest, *options]
        began = time.monotonic()
        process(*command(made))
        wanted = contents(made, "dl2-index.bin")
        seconds = time.monotonic() - began
        draw, killed = random.Random(1), 0
        while killed < int(os.environ.get("HUB_KILLS", "3")):
            dest = f"{made}-{killed}"
            first = subprocess.Popen([*HUB, *command(dest)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
            time.sleep(seconds * draw.uniform(0.2, 1))
            if first.poll() is None:
                killed += 1
                os.killpg(first.pid, 9)
                first.wait()
            else:
                seconds *= 0.8
            hub(*command(dest))
            self.assertEqual(contents(dest, "dl2-index.bin"), wanted)
            shutil.rmtree(dest)

    def test_get(self):
        flowers("killed", 2000)
        self.kill("killed-get", "get", "killed", "--shard", "1")

    def test_twin(self):
        flowers("killed", 2000)
        self.kill("killed-twin", "twin", "killed", "--codec", "jpeg", "--q", "30")


class Server(http.server.BaseHTTPRequestHandler):
    """What the Hub's API answers about OWNER/NAME, whose files lie in ./flowers: first 429, of each kind of request, and 401
    without the token."""
    protocol_version = "HTTP/1.1"
    refused, ranges, commit = set(), 0, "0123456789abcdef0123456789abcdef01234567"

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {"Content-Length": len(body), **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def entry(self, path):
        return {"type": "file", "oid": "0" * 40, "size": os.path.getsize(f"flowers/{path}"), "path": path}

    def do_GET(self):
        url = urllib.parse.urlparse(self.path)
        path, kind = urllib.parse.unquote(url.path), Server
        files = sorted(os.path.relpath(name, "flowers") for name in glob.glob("flowers/**", recursive=True) if os.path.isfile(name))
        if self.headers.get("Authorization") != "Bearer hf_secret" and not path.startswith("/store/"):
            self.answer(401, b'{"error": "Invalid username or password."}', X_Error_Code="RepoNotFound")
        elif (sort := re.search("/tree/|/resolve/|/store/|$", path)[0]) not in kind.refused:
            kind.refused.add(sort)
            self.answer(429, Retry_After=0)
        elif path.startswith("/store/"):  # where redirections lead, to ranges
            with open(f"flowers/{path[7:]}", "rb") as file:
                data = file.read()
            wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            if not wanted:
                return self.answer(200, data)
            kind.ranges += 1
            first, last = int(wanted[1]), min(int(wanted[2]), len(data) - 1)
            self.answer(206, data[first:last + 1], Content_Range=f"bytes {first}-{last}/{len(data)}")
        elif "/resolve/" in path:
            name = path.split("/resolve/")[1].split("/", 1)[1]
            self.answer(302, Location=f"{BASE}/store/{urllib.parse.quote(name)}", X_Repo_Commit=kind.commit,
                        X_Linked_Size=os.path.getsize(f"flowers/{name}"), ETag='"1"', X_Linked_ETag='"1"')
        elif "/tree/" in path:  # in pages of two
            below = (path.split("/tree/")[1].split("/", 1) + [""])[1]
            cursor = int(urllib.parse.parse_qs(url.query).get("cursor", ["0"])[0])
            found = [name for name in files if name.startswith(below)]
            if "recursive" not in url.query or "recursive=False" in url.query or "recursive=false" in url.query:
                found = [name for name in found if "/" not in name[len(below):].strip("/")]
            entries = [{"type": "directory", "oid": "1" * 40, "size": 0, "path": "data"}] if not below else []
            entries += [self.entry(name) for name in found]
            follow = {"Link": f'<{BASE}{url.path}?{re.sub("&cursor=[0-9]+", "", url.query)}&cursor={cursor + 2}>; rel="next"'} \
                if cursor + 2 < len(entries) else {}
            self.answer(200, json.dumps(entries[cursor:cursor + 2]).encode(), Content_Type="application/json", **follow)
        elif path.endswith("/refs"):
            self.answer(200, json.dumps({"branches": [{"name": "main", "ref": "refs/heads/main", "targetCommit": kind.commit}],
                                         "converts": [], "tags": []}).encode(), Content_Type="application/json")
        elif path.startswith("/api/datasets/owner/name"):
            self.answer(200, json.dumps({"id": "owner/name", "sha": kind.commit, "private": True, "siblings": [
                {"rfilename": name} for name in files], "tags": [], "downloads": 0, "likes": 0}).encode(), Content_Type="application/json")
        else:
            self.answer(404, b'{"error": "not here"}', X_Error_Code="EntryNotFound")

    do_HEAD = do_GET

    def do_POST(self):
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        asked = json.loads(asked)["paths"] if asked.startswith("{") else urllib.parse.parse_qs(asked)["paths"]
        found = [self.entry(path) if os.path.isfile(f"flowers/{path}") else {"type": "directory", "oid": "1" * 40, "size": 0, "path": path}
                 for path in asked if os.path.exists(f"flowers/{path}")]
        self.answer(200, json.dumps(found).encode(), Content_Type="application/json")

    def log_message(self, *_):
        pass


class Hub(unittest.TestCase):
    def test_get(self):
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
            global BASE
            BASE = f"http://127.0.0.1:{server.server_port}"
            threading.Thread(target=server.serve_forever, daemon=True).start()
            said = process("get", "hf://datasets/owner/name", "hub-x", status=1, HF_ENDPOINT=BASE)
            self.assertIn("is not there, or private, which needs a token in HF_TOKEN", said)
            process("get", "hf://datasets/owner/name", "hub-shards", HF_ENDPOINT=BASE, HF_TOKEN="hf_secret")
            ranges = Server.ranges
            hub("get", "flowers", "local-shards")
            process("twin", "hf://datasets/owner/name", "hub-twin", "--q", "30", HF_ENDPOINT=BASE, HF_TOKEN="hf_secret")
            self.assertLessEqual(Server.ranges - ranges, ranges)  # a twin reads its source once, too
            said = process("verify", "hub-twin", "hf://datasets/owner/name", HF_ENDPOINT=BASE, HF_TOKEN="hf_secret")
            server.shutdown()
        self.assertIn("dl2-hub: the server does not answer: ", process("get", "hf://datasets/owner/name", "hub-shards", status=1, HF_ENDPOINT=BASE))
        self.assertIn("5000 rows and 4706 images are as the card says", said)
        with open("hub-twin/README.md", encoding="utf-8") as file:
            self.assertIn(f"of [owner/name](https://huggingface.co/datasets/owner/name) at commit `{Server.commit}`, with", file.read())
        self.assertEqual((Server.refused, 4 <= ranges < 20), ({"", "/tree/", "/resolve/", "/store/"}, True),
                         f"{ranges} ranges of four small files")
        self.assertEqual(contents("hub-shards", "dl2-index.bin", ".dl2-hub"), contents("local-shards", "dl2-index.bin", ".dl2-hub"))


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
