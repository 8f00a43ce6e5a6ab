#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Parquet files with images, as `datasets` and the Hugging Face Hub have them: into shards, and back.

This file is the program dl2-hub and the module dl2.hub. It needs nothing of dl2 but its programs, and pyarrow, fsspec and
PyYAML; for hf:// also huggingface_hub. It moves bytes; dl2-transcode, which is found beside it or on the PATH, encodes them.
"""
import argparse
import base64
import concurrent.futures
import contextlib
import datetime
import decimal
import fcntl
import functools
import glob
import hashlib
import io
import itertools
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.parse

NEEDS = "pip install 'pyarrow>=21' fsspec huggingface_hub pyyaml"
try:
    import fsspec
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    import yaml
    from fsspec.utils import glob_translate
    ABSENT = None
except ImportError as error:
    ABSENT = error.name

BATCH_BYTES = 16 << 20  # size of the rows that are read at once, by the mean size in their row group
BUFFER_BYTES = 4 << 20  # read-ahead of each column


def fail(text):
    """Ends the program with exit status 1."""
    sys.exit(f"dl2-hub: {text}")


def warn(text):
    print(f"dl2-hub: {text}", file=sys.stderr)


@contextlib.contextmanager
def reading(where):
    """Refuses a description of a dataset that has another form than `datasets` gives it."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError, yaml.YAMLError) as error:
        fail(f"{where} is not as `datasets` writes it: {type(error).__name__}: {error}")


# ---- Images

STARTS = ((0, b"\xff\xd8\xff", "jpg"), (0, b"\x89PNG", "png"), (8, b"WEBP", "webp"), (4, b"ftypavif", "avif"),
          (4, b"ftypavis", "avif"), (0, b"GIF8", "gif"), (0, b"II*\0", "tiff"), (0, b"MM\0*", "tiff"),
          (4, b"jP  \r\n", "jp2"), (0, b"\xff\x0a", "jxl"), (4, b"JXL \r\n", "jxl"))
EXTENSIONS = {"avif", "bmp", "gif", "jp2", "jpeg", "jpg", "jxl", "pbm", "pgm", "png", "pnm", "ppm", "tif", "tiff", "webp"}


def format_of(data):
    """The extension of an image's format, by its first bytes, or None."""
    head = bytes(memoryview(data)[:12])
    for at, start, extension in STARTS:
        if head[at:].startswith(start):
            return extension
    if head.startswith(b"BM") and head[6:10] == bytes(4):
        return "bmp"
    return "ppm" if re.match(rb"P[1-6]\s", head) else None


def extension_of(path):
    return posixpath.splitext(path)[1][1:].lower()


def normal(extension):
    return {"jpeg": "jpg", "tif": "tiff", "pbm": "ppm", "pgm": "ppm", "pnm": "ppm"}.get(extension, extension)


class Place:
    """Where a column has images: `steps` lead through its type, the name of a struct's field or "" into a list."""

    def __init__(self, column, steps):
        self.column, self.steps = column, steps
        self.names = (column, *filter(None, steps))
        self.text = column + "".join(f".{step}" if step else "[]" for step in steps)
        self.is_single = "" not in steps

    def open(self, batch):
        """The images of a batch as one array, and the function that makes the column with another array in its place."""
        return opened(batch.column(self.column), self.steps)


def opened(array, steps):
    kind = array.type
    if not steps:
        return array, lambda new: new
    if pa.types.is_struct(kind):
        index = kind.get_field_index(steps[0])
        inner, put = opened(array.field(index), steps[1:])

        def put_field(new):
            fields = [put(new) if i == index else array.field(i) for i in range(kind.num_fields)]
            types = [kind.field(i).with_type(field.type) for i, field in enumerate(fields)]
            return pa.StructArray.from_arrays(fields, fields=types, mask=array.is_null())
        return inner, put_field
    item = kind.value_field
    if pa.types.is_fixed_size_list(kind):
        size = kind.list_size
        inner, put = opened(array.values.slice(array.offset * size, len(array) * size), steps[1:])

        def put_parts(new):
            values = put(new)
            return pa.FixedSizeListArray.from_arrays(values, type=pa.list_(item.with_type(values.type), size),
                                                     mask=array.is_null())
        return inner, put_parts
    large = pa.types.is_large_list(kind)
    inner, put = opened(array.flatten(), steps[1:])

    def put_items(new):
        values, lengths = put(new), pc.fill_null(pc.list_value_length(array), 0).cast(pa.int64())
        offsets = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths)])
        made, of = (pa.LargeListArray, pa.large_list) if large else (pa.ListArray, pa.list_)
        return made.from_arrays(offsets.cast(pa.int64() if large else pa.int32()), values,
                                type=of(item.with_type(values.type)), mask=array.is_null())
    return inner, put_items


def is_binary(kind):
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def is_image_struct(kind):
    return pa.types.is_struct(kind) and {"bytes", "path"} == {field.name for field in kind} and \
        is_binary(kind.field("bytes").type)


def parts_of(images):
    """The encoded bytes and the paths of an array of images; there may be no paths."""
    if pa.types.is_struct(images.type):
        return pc.struct_field(images, "bytes"), pc.struct_field(images, "path")
    return images, None


def places_in(column, kind, steps=()):
    """All places that may hold images, by their types."""
    if is_binary(kind) or is_image_struct(kind):
        yield Place(column, steps)
    elif pa.types.is_struct(kind):
        for field in kind:
            yield from places_in(column, field.type, (*steps, field.name))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        yield from places_in(column, kind.value_type, (*steps, ""))


# ---- Features: {names: type}, such as {("label",): {"_type": "ClassLabel", "names": [...]}}

def types_in_schema(value, names=()):
    """The types in the JSON that `datasets` writes into a schema."""
    if isinstance(value, list):
        return types_in_schema(value[0], names) if value else {}
    if not isinstance(value, dict):
        return {}
    if isinstance(value.get("_type"), str):
        return types_in_schema(value["feature"], names) if "feature" in value else {names: value}
    return {at: kind for name, inner in value.items() for at, kind in types_in_schema(inner, (*names, name)).items()}


def types_in_card(value, names=()):
    """The types in the features of a dataset card."""
    if isinstance(value, list):
        return {at: kind for entry in value if isinstance(entry, dict)
                for at, kind in types_in_card(entry, (*names, str(entry.get("name")))).items()}
    if isinstance(value, str):
        return {names: {"_type": value.title()}}
    if "class_label" in value:
        classes = (value["class_label"] or {}).get("names", [])
        if isinstance(classes, dict):
            classes = [classes[key] for key in sorted(classes, key=int)]
        return {names: {"_type": "ClassLabel", "names": classes}}
    for key in ("dtype", "list", "sequence", "large_list", "struct"):
        if key in value:
            return types_in_card(value[key], names)
    return {}


# ---- Where the files lie

# The words that `datasets` looks for in the names of files and folders.
SPLITS = {"train": "train", "training": "train", "validation": "validation", "valid": "validation", "val": "validation",
          "dev": "validation", "test": "test", "testing": "test", "eval": "test", "evaluation": "test"}


def split_of(path):
    """The split that the name of a file says, else that of the folder that is nearest to it; or None."""
    name = posixpath.basename(path)
    numbered = re.match(r"(\w+(?:\.\w+)*)-\d{5,}-of-\d{5,}", name)
    if numbered:
        return SPLITS.get(numbered[1].lower(), numbered[1])
    for part in [name, *reversed(path.split("/")[:-1])]:
        words = {SPLITS[word] for word in re.split(r"[-_. 0-9]+", part.lower()) if word in SPLITS}
        if len(words) == 1:
            return words.pop()
    return None


def patient(ask):
    """The answer of a server, which is asked again as often as the Hub's library does for ranges, if it wants fewer requests."""
    for tries in itertools.count(1):
        try:
            return ask()
        except OSError as error:
            answer = getattr(error, "response", None)
            if answer is None or answer.status_code != 429 or tries > 5:
                raise
            pause = answer.headers.get("Retry-After", "")
            time.sleep(int(pause) if pause.isdigit() else 2)
        except ImportError:
            raise
        except Exception as error:  # without a connection each library raises its own class
            fail(f"the server does not answer: {error}")


def ahead(items):
    """The same items; a thread gets the next one meanwhile."""
    items, end = iter(items), object()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, items, end)
        while (item := following.result()) is not end:
            following = pool.submit(next, items, end)
            yield item


class Source:
    """The Parquet files at an address.

    `splits` is {name: [path relative to root]}; the name is None where none is known. `stamp` changes with the files.
    `schema`, `places` of images and `types` of columns are those of all files, `rows` the number in each. `card_text` is the
    README's, or "".
    """

    def __init__(self, address, config=None, split=None):
        self.address = address
        self.fs, path, self.commit = self._locate(address)
        self.is_local = isinstance(self.fs, fsspec.get_filesystem_class("file"))
        infos = patient(lambda: self._list(path))
        self.card_text = ""
        if self._join("README.md") in infos:
            self.card_text = patient(lambda: self.fs.cat_file(self._join("README.md"))).decode("utf-8", "replace")
        front = re.match(r"---\s*\n(.*?)^---\s*$", self.card_text, re.S | re.M)
        with reading(self._join("README.md")):
            card = yaml.safe_load(front[1]) if front else None
        self.card = card if isinstance(card, dict) else {}
        self.others = sorted(name for name in map(self._relative, infos)
                             if not name.endswith(".parquet") and name != "README.md")
        paths = sorted(name for name in map(self._relative, infos) if name.endswith(".parquet"))
        if not paths:
            fail(f"{address} has no Parquet files" + (
                "; the Hub makes them of most datasets, at hf://datasets/OWNER/NAME@refs%2Fconvert%2Fparquet"
                if self.commit else "") + (f"; it has {self.others[0]}" if self.others else ""))
        with reading(self._join("README.md")):
            self.splits = self._by_card(paths, config) or self._by_name(paths)
        odd = [name for name in [*filter(None, self.splits), *paths] if not re.match(r"\w", name) or ".." in name.split("/")] + \
            [split for split in filter(None, self.splits) if "/" in split]
        if odd:
            fail(f"{address} has a split or a file of the name {odd[0]!r}, which cannot be a folder or a file here")
        if split is not None:
            if split not in self.splits:
                fail(f"{address} has no split {split}, but {', '.join(map(str, self.splits))}")
            self.splits = {split: self.splits[split]}
        self.paths = [path for files in self.splits.values() for path in files]
        self.stamp = [[path, *(str(infos[self._join(path)].get(key, "")) for key in
                               ("size", "mtime", "ETag", "etag", "LastModified", "blob_id"))] for path in self.paths]
        self._read_schema()

    def _locate(self, address):
        """Files of the Hub are read at one commit, so that none is of a later one."""
        try:
            fs, path = fsspec.core.url_to_fs(address)
            if type(fs).__name__ != "HfFileSystem":
                is_local = isinstance(fs, fsspec.get_filesystem_class("file"))
                return fs, os.path.normpath(path) if is_local else path.rstrip("/"), None
            import huggingface_hub
            at = patient(lambda: fs.resolve_path(path))
            api = huggingface_hub.HfApi()
            commit = patient(lambda: api.repo_info(at.repo_id, repo_type=at.repo_type, revision=at.revision).sha)
            return fs, f"{at.repo_type}s/{at.repo_id}@{commit}/{at.path_in_repo}".rstrip("/"), commit
        except ImportError as error:
            fail(f"{address}: {sys.executable} lacks what reads such addresses ({error}): {NEEDS}")
        except FileNotFoundError as error:
            fail(f"{address} is not there, or private, which needs a token in HF_TOKEN: {error}")

    def _list(self, path):
        """The files at the path, {whole path: what is known of it}; sets `root`."""
        self.root = posixpath.dirname(path)
        if self.fs.isfile(path):
            return {path: self.fs.info(path)}
        if not self.fs.isdir(path) and re.search(r"[*?[]", path):
            self.root = posixpath.dirname(re.split(r"[*?[]", path)[0])
            infos = {name: info for name, info in self.fs.glob(path, detail=True).items() if info["type"] == "file"}
            return infos or fail(f"{self.address}: no file has such a name")
        self.root = path
        infos = self.fs.find(path, detail=True)
        if not infos:
            fail(f"{self.address} is not there, or empty" + (", or private: name a token in HF_TOKEN" if self.commit else ""))
        return {name: info for name, info in infos.items()
                if not any(part.startswith(".") for part in self._relative(name).split("/"))}

    def _relative(self, path):
        return posixpath.relpath(path, self.root)

    def _join(self, path):
        return posixpath.join(self.root, path)

    def _by_card(self, paths, wanted):
        """The splits of one of the card's configurations, if it names files."""
        configs = {str(entry.get("config_name", "default")): entry for entry in self.card.get("configs") or []}
        if not configs and wanted:
            fail(f"{self.address} has no card that names configurations: --config chooses one of these")
        defaults = [name for name, entry in configs.items() if entry.get("default")] or \
            [name for name in configs if name == "default" or len(configs) == 1]
        if wanted not in configs and (wanted or (configs and not defaults)):
            fail(f"{self.address} has the configurations {', '.join(configs)}: choose one by --config")
        self.config = wanted or (defaults[0] if defaults else None)
        files = configs.get(self.config, {}).get("data_files")
        folder = configs.get(self.config, {}).get("data_dir") or ""
        if files is None:
            below = [path for path in paths if not folder or path.startswith(folder.strip("/") + "/")]
            return self._by_name(below or fail(f"{self.address}: configuration {self.config} has no Parquet files")) \
                if folder else None
        if isinstance(files, (str, dict)) or all(isinstance(entry, str) for entry in files):
            files = [{"split": split, "path": path} for split, path in files.items()] if isinstance(files, dict) else \
                [{"split": "train", "path": files}]
        splits = {}
        for entry in files:
            patterns = [entry["path"]] if isinstance(entry["path"], str) else entry["path"]
            found = []
            for pattern in patterns:
                matches = re.compile(glob_translate(posixpath.normpath(posixpath.join(folder, pattern)))).match
                found += [path for path in paths if matches(path)]
                if not any(map(matches, paths)):
                    fail(f"{self.address}: the card's files {pattern} of split {entry['split']} are not there as Parquet" + (
                        f", but as {next(filter(matches, self.others))}" if any(map(matches, self.others)) else ""))
            splits[str(entry["split"])] = list(dict.fromkeys(found))
        return splits

    def _by_name(self, paths):
        splits, places = {}, set()
        for path in paths:
            split = split_of(path)
            splits.setdefault(split, []).append(path)
            folders = path.split("/")[:-1]
            places.add("/".join(folders[:-1] if folders and split_of(folders[-1]) else folders))
        if len(places) > 1:
            fail(f"{self.address} has files in several folders, which may be several versions of the same images: name one "
                 f"of {', '.join(sorted(posixpath.join(self.address, place) for place in places))}")
        if len(splits) > 1 and None in splits:
            fail(f"{self.address} has splits, and {splits[None][0]} is of none: name a folder or a pattern without it")
        return splits

    # -- Rows

    def parquet(self, path):
        """One of the files, opened."""
        where = self._join(path)
        try:
            # elsewhere in few requests: columns of a row group lie side by side
            file = where if self.is_local else self.fs.open(where, "rb", block_size=2 * BUFFER_BYTES, cache_type="blockcache",
                                                            cache_options={"maxblocks": 16})
            return pq.ParquetFile(file, buffer_size=BUFFER_BYTES, pre_buffer=False)
        except Exception as error:  # libraries of stores have their own classes
            fail(f"{where} cannot be read as Parquet: {error}")

    def _read_schema(self):
        first = self.parquet(self.paths[0])
        self.schema = first.schema_arrow
        names = self.schema.names
        if len(set(names)) < len(names):
            fail(f"{self._join(self.paths[0])} has two columns of the name {next(n for n in names if names.count(n) > 1)!r}")
        self.rows = {}
        for path in self.paths:
            file = first if path == self.paths[0] else self.parquet(path)
            self.rows[path] = file.metadata.num_rows
            if not file.schema_arrow.equals(self.schema):
                odd = sorted(str(field) for field in set(file.schema_arrow) ^ set(self.schema))
                fail(f"{self._join(path)} has other columns than {self._join(self.paths[0])}: {', '.join(odd) or 'their order'}")
        with reading(self._join("README.md")):
            info = self.card.get("dataset_info") or {}
            if isinstance(info, list):
                info = next((one for one in info if str(one.get("config_name")) == self.config), info[0])
            self.types = types_in_card(info.get("features") or [])
        with reading(f"{self._join(self.paths[0])}, huggingface in its schema,"):
            about = json.loads((self.schema.metadata or {}).get(b"huggingface", b"{}"))
            self.types.update(types_in_schema(about.get("info", {}).get("features") or {}))
            for kind in self.types.values():
                kind.update({"names": [str(name) for name in kind["names"]]} if "names" in kind else {})
        places = [place for field in self.schema for place in places_in(field.name, field.type)
                  if self.types.get(place.names, {}).get("_type") in (None, "Image", "Value", "Binary")]
        self.places = [place for place in places if self.types.get(place.names, {}).get("_type") == "Image"]
        asked = [place for place in places if place not in self.places]
        for _, batch in self.batches(self.paths[0], first, columns=sorted({place.column for place in asked})):
            for place in list(asked):  # by the first image or other bytes
                data, paths = (part and part.drop_null() for part in parts_of(place.open(batch)[0]))
                if len(data) or paths:
                    asked.remove(place)
                    is_image = format_of(data[0].as_buffer()) if len(data) else extension_of(paths[0].as_py()) in EXTENSIONS
                    self.places += [place] if is_image else []
            if not asked:
                break
        self.places.sort(key=lambda place: places.index(place))

    def choose_places(self, wanted):
        """The places of images, those that are wanted or likely to be the main ones first."""
        texts = {place.text: place for place in self.places}
        texts.update({place.column: place for place in reversed(self.places)})
        if not self.places:
            of_text = [field.name for field in self.schema if pa.types.is_string(field.type)]
            fail(f"{self.address} has no column of images: none of {', '.join(self.schema.names)} holds bytes of an image"
                 + (f" ({', '.join(of_text)} may hold their addresses, which are not followed)" if of_text else ""))
        unknown = [name for name in wanted or [] if name not in texts]
        if unknown:
            fail(f"{unknown[0]!r} is no column of images; {', '.join(place.text for place in self.places)} are")
        usual = [texts[name] for name in ("image", "img", "jpg", "png", "webp", "images", "pixel_values") if name in texts]
        first = [texts[name] for name in wanted] if wanted else (usual or self.places)[:1]
        return first, [place for place in self.places if place not in first]

    def batches(self, path, file=None, row=0, columns=None, groups=None, sizes=None):
        """(number of its first row, RecordBatch) of one file, from a row on, in batches as of a file of metadata `sizes`."""
        if columns == []:
            return
        file, at = file or self.parquet(path), 0
        for group in range(file.num_row_groups) if groups is None else groups:
            about = file.metadata.row_group(group)
            end = at + about.num_rows
            if end > row:
                like = sizes.row_group(group) if sizes else about
                size = sum(like.column(i).total_uncompressed_size for i in range(like.num_columns))
                count = max(1, min(1024, BATCH_BYTES * about.num_rows // max(size, 1)))
                try:
                    for batch in ahead(file.iter_batches(count, row_groups=[group], columns=columns)):
                        if at + batch.num_rows > row:
                            yield max(at, row), batch.slice(max(row - at, 0))
                        at += batch.num_rows
                except Exception as error:  # libraries of stores have their own classes
                    fail(f"{self._join(path)}, row group {group} cannot be read: {error}")
                if at != end:
                    fail(f"{self._join(path)}, row group {group} has {about.num_rows - end + at} rows, not "
                         f"{about.num_rows} as its header says")
            at = end

    def file_at(self, parquet, path):
        """The bytes of an image that a row names by its path: beside the Parquet file, or on this machine; or None."""
        where = posixpath.normpath(posixpath.join(posixpath.dirname(self._join(parquet)), path))
        if "://" in path or not (self.is_local if posixpath.isabs(path) else where.startswith(self.root + "/")):
            return None
        try:
            return self.fs.cat_file(where)
        except OSError:
            return None


# ---- Programs of ours

def program(name):
    beside = os.path.join(os.path.dirname(os.path.realpath(sys.argv[0])), name)
    found = beside if os.access(beside, os.X_OK) else shutil.which(name)
    return found or fail(f"{name} is neither beside dl2-hub nor on the PATH")


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        fail(f"{os.path.basename(command[0])} failed with exit status {done.returncode}: {' '.join(command[1:])}")
    return done.stdout


def version():
    return run(program("dl2-transcode"), "--version").decode().split("\n")[0].split()[-1]


class Progress:
    def __init__(self, quiet, total):
        self.is_shown, self.total, self.next = not quiet and sys.stderr.isatty(), total, 0

    def show(self, done, what):
        if self.is_shown and time.monotonic() >= self.next:
            self.next = time.monotonic() + 0.5
            print(f"\r{done} of {self.total} {what}\x1b[K", end="", file=sys.stderr)

    def end(self):
        if self.is_shown:
            print("\r\x1b[K", end="", file=sys.stderr)


class Journal:
    """A file of JSON lines in DEST, whose first line says what is made; a run that was killed goes on from the others."""

    NAME = ".dl2-hub"

    def __init__(self, dest, makes):
        path = os.path.join(dest, self.NAME)
        if os.path.lexists(dest) and not os.path.exists(path) and (not os.path.isdir(dest) or os.listdir(dest)):
            fail(f"{dest} is there already")
        os.makedirs(dest, exist_ok=True)
        self.file = open(path, "a+", encoding="utf-8")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            fail(f"another dl2-hub writes {dest} at this moment")
        self.file.seek(0)
        whole = [line for line in self.file.read().splitlines(keepends=True) if line.endswith("\n")]
        self.lines = [json.loads(line) for line in whole]
        self.file.truncate(sum(len(line.encode()) for line in whole))
        if not self.lines:
            self.add(makes)
        there, makes = self.lines[0], json.loads(json.dumps(makes))
        differ = ", ".join(key for key in makes if makes[key] != there.get(key))
        if differ:
            fail(f"{dest} was made of {there.get('source')} with other {differ}: remove it, or name another folder")
        self.lines = self.lines[1:]

    def add(self, line):
        text = json.dumps(line)
        self.lines.append(json.loads(text))
        self.file.write(text + "\n")
        self.file.flush()

    @property
    def is_complete(self):
        return bool(self.lines) and "complete" in self.lines[-1]


# ---- get

def plain(value):
    """A value of another column as JSON has it: binary in base64, times in ISO 8601, decimals as text."""
    if isinstance(value, dict):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return str(value) if isinstance(value, (decimal.Decimal, datetime.timedelta)) else value


def python_of(array, place):
    try:
        return array.to_pylist()
    except (ValueError, pa.ArrowException) as error:  # text that is not UTF-8, nanoseconds without pandas
        return fail(f"{place}: {error}")


def numbers_at(value, steps):
    """The numbers that stand in place of the images of a row, in order; `value` is the row's."""
    if value is not None and not steps:
        yield value
    elif value is not None:
        for inner in value if steps[0] == "" else [value[steps[0]]]:
            yield from numbers_at(inner, steps[1:])


def choose_label(source, wanted):
    """The names that lead to the classes, or None; and the list of classes, or None."""
    def kind_at(names):
        kind = source.schema.field(names[0]).type if names[0] in source.schema.names else None
        for name in names[1:]:
            kind = kind.field(name).type if kind and pa.types.is_struct(kind) and kind.get_field_index(name) >= 0 else None
        return kind

    def is_label(kind):
        kind = kind.value_type if kind and pa.types.is_dictionary(kind) else kind
        return kind and any(test(kind) for test in (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string,
                                                    pa.types.is_boolean))
    if wanted:
        names = (wanted,) if wanted in source.schema.names else tuple(wanted.split("."))
        if not is_label(kind_at(names)):
            fail(f"--label {wanted}: " + (f"it is {kind_at(names)}, not the number or name of one class" if kind_at(names) else
                                          f"there is no such column; there are {', '.join(source.schema.names)}"))
    else:
        classes = [names for names, kind in source.types.items() if kind["_type"] == "ClassLabel" and is_label(kind_at(names))]
        usual = [(name,) for name in ("label", "labels", "cls", "class", "fine_label") if is_label(kind_at((name,)))]
        names = classes[0] if len(classes) == 1 else (usual or classes or [None])[0]
    return names, source.types.get(names, {}).get("names")


@functools.lru_cache(maxsize=1 << 16)
def folder_of(word):
    """The folder of a class, CLASS/, as a copy into a folder of files has it; "" for a word that cannot name one."""
    odd = not word or word.startswith(".") or re.search(r"[/\\\n\0]", word) or len(word.encode()) > 200 or \
        re.fullmatch(r"(train(ing)?|val|valid(ation)?|dev|test(ing)?|all)\d{0,4}", word, re.I)
    return "" if odd else f"{word}/"


def member_name(place, number):
    """The name of a further image's member, in which dots part the names of fields and the numbers of lists."""
    names = [urllib.parse.quote(name, safe=" ").replace(".", "%2E") for name in place.names]
    return ".".join(names + ([] if place.is_single else [str(number)]))


TO_JSON = json.JSONEncoder(ensure_ascii=False).encode
BLANK = tarfile.TarInfo("").tobuf(tarfile.USTAR_FORMAT)
BLANK_SUM = sum(BLANK[100:124] + BLANK[136:148] + b" " * 8 + BLANK[156:])


def tar_member(name, data):
    """A member of a tar file, in parts. tarfile makes headers of long and other names, which takes ten times as long."""
    if len(name) <= 100 and name.isascii():
        name, size = name.encode(), b"%011o\0" % len(data)
        checked = b"%06o\0 " % (BLANK_SUM + sum(name) + sum(size))
        header = name.ljust(100, b"\0") + BLANK[100:124] + size + BLANK[136:148] + checked + BLANK[156:]
    else:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        header = info.tobuf(tarfile.PAX_FORMAT)
    return header, data, bytes(-len(data) % 512)


class Getter:
    """Makes the members of rows, and counts what a summary has to name."""

    def __init__(self, source, options):
        self.source = source
        self.first, self.further = source.choose_places([options.image] if options.image else None)
        self.label, self.classes = choose_label(source, options.label)
        self.counts = {}

    def count(self, what, example=None):
        number, first = self.counts.get(what, (0, example))
        self.counts[what] = (number + 1, first)

    def image_of(self, path, number, leaf, at):
        """The bytes of an image, and its extension; the bytes are None where there is none."""
        data, paths = leaf
        name = paths[at]
        image = data[at].as_buffer()
        if image is None and name:
            image = self.source.file_at(path, name)
            if image is None:
                self.count("name an image that is not beside the Parquet file", f"{path}, row {number}: {name}")
        if image is None:
            return None, None
        extension = format_of(image)
        if not extension:
            self.count("have bytes of no known format, and are kept as .bin",
                       f"{path}, row {number}, begins with {bytes(image[:8]).hex(' ')}")
        return image, extension or "bin"

    def samples(self, path, start, of_split):
        """For each row of a file from `start` on: its number, and its members, one after the other as in a tar file.
        `of_split` is the number of the file's first row in its split."""
        for at, batch in self.source.batches(path, row=start):
            columns = {name: batch.column(name) for name in self.source.schema.names}
            leaves = []
            for place in self.first + self.further:
                where = f"{path}, rows from {at} on, column {place.text}"
                images, put = opened(columns[place.column], place.steps)
                data, paths = parts_of(images)
                names = [None] * len(images) if paths is None else python_of(paths, where)
                leaves.append((place, (data, names), python_of(put(pa.array(range(len(images)), pa.int64())), where)))
                # paths stay among the other values
                columns[place.column] = put(pa.nulls(len(images)) if paths is None else paths)
            labels = [None] * batch.num_rows
            if self.label:
                labels = batch.column(self.label[0])
                labels = (pc.struct_field(labels, list(self.label[1:])) if self.label[1:] else labels).to_pylist()
            others = {name: python_of(column, f"{path}, rows from {at} on, column {name}") for name, column in columns.items()}
            for i in range(batch.num_rows):
                rows = [(place, leaf, numbers[i]) for place, leaf, numbers in leaves]
                yield at + i, self.members(path, at + i, of_split + at + i, rows, labels[i],
                                           {name: values[i] for name, values in others.items()})

    def members(self, path, row, number, leaves, label, values):
        word = None if label is None or label == -1 else label
        if isinstance(word, bool):
            word = int(word)
        if self.classes and word is not None:
            if isinstance(word, str) or not 0 <= word < len(self.classes):
                fail(f"{path}, row {row} has label {label}, but there are {len(self.classes)} classes")
        self.count("rows")
        if word is None and self.label:
            self.count("have no class")
        key = folder_of("" if word is None else str(self.classes[word] if self.classes else word)) + f"{number:09d}"
        members, first, has_image = {}, None, False
        for place, leaf, numbers in leaves:
            found = 0
            for k, image in enumerate(numbers_at(numbers, place.steps)):
                data, extension = self.image_of(path, row, leaf, image)
                if data is None:
                    continue
                found += 1
                is_first = place is leaves[0][0] and k == 0
                has_image |= is_first and extension != "bin"
                self.count(f"images {extension}" if is_first else "further images")
                name = f"{key}.{extension}" if is_first else f"{key}.{member_name(place, k)}.{extension}"
                members[name], first = data, name if is_first else first
            if found and not place.steps and values[place.column] is None:
                del values[place.column]
        if not has_image:
            self.count("have no image", f"{path}, row {row}")
        if word is not None:
            members[f"{key}.cls"] = str(word).encode()
            if len(self.label) == 1:
                del values[self.label[0]]
        if values:
            members[f"{key}.json"] = TO_JSON(plain(values)).encode("utf-8", "surrogatepass")
        names = sorted(members, key=lambda name: (name != first, name != f"{key}.cls", name))
        parts = [part for name in names for part in tar_member(name, members[name])]
        return sum(map(len, parts)), parts


def summary(where, counts):
    rows = counts.get("rows", (0, None))[0]
    images = {what[7:]: number for what, (number, _) in counts.items() if what.startswith("images ")}
    further = counts.get("further images", (0, None))[0]
    print(f"{where}: {rows} rows, {sum(images.values())} images ({', '.join(f'{n} {e}' for e, n in sorted(images.items()))})"
          + (f", {further} further images" if further else ""))
    for what, (number, example) in counts.items():
        if what not in ("rows", "further images") and not what.startswith("images "):
            print(f"  {number} rows {what}" + (f"; the first: {example}" if example else ""))


def get_split(getter, journal, split, folder, shard_bytes, progress):
    """Writes the shards of one split that the journal lacks, and a line of the journal for each."""
    source, files = getter.source, getter.source.splits[split]
    done = [line for line in journal.lines if line["split"] == split]
    last = done[-1] if done else {"file": 0, "row": 0, "first": 0, "counts": {}, "end": False}
    getter.counts = {what: tuple(number) for what, number in last["counts"].items()}
    if last["end"]:
        return
    os.makedirs(folder, exist_ok=True)
    shard, filled, shards, first = None, 0, len(done), last["first"]

    def close(file, row, end):
        nonlocal shard, filled, shards
        if shard:
            shard.write(bytes(1024))
            shard.close()
            os.rename(shard.name, os.path.join(folder, f"shard-{shards:06d}.tar"))
        journal.add({"split": split, "file": file, "row": row, "first": first, "counts": getter.counts, "end": end})
        shard, filled, shards = None, 0, shards + 1

    row = last["row"]
    for number in range(last["file"], len(files)):
        for row, (size, members) in getter.samples(files[number], row, first):
            if shard is None:
                shard = open(os.path.join(folder, ".shard.new"), "wb", buffering=1 << 20)
            shard.writelines(members)
            filled += size
            progress.show(getter.counts["rows"][0], f"rows of {split or source.address}")
            if filled >= shard_bytes:
                close(number, row + 1, False)
        first, row = first + source.rows[files[number]], 0
    if getter.classes:
        with open(os.path.join(folder, "classes.txt"), "w", encoding="utf-8") as file:
            file.writelines(f"{name}\n" for name in getter.classes)
    close(len(files), 0, True)


def get(options):
    source = Source(options.source, options.config, options.split)
    getter = Getter(source, options)
    if any("\n" in name or not name for name in getter.classes or []):
        fail(f"{options.source} has a class without a name, or with a line break in it, which classes.txt cannot hold")
    dest = options.dest.rstrip("/") or "/"
    transcode = program("dl2-transcode")
    journal = Journal(dest, {"schema": "dl2-hub-get/1", "source": options.source, "files": source.stamp,
                             "image": getter.first[0].text, "label": getter.label, "shard": options.shard})
    print(f"images: column {getter.first[0].text}; classes: {'.'.join(getter.label) if getter.label else 'none'}"
          + (f"; beside each image: {', '.join(place.text for place in getter.further)}" if getter.further else ""))
    if not getter.label:
        print("no column has one class a row: --label names one")
    progress, counts = Progress(options.quiet, sum(source.rows.values())), {}
    unfinished = os.path.join(dest, ".dl2-unfinished")
    if not journal.is_complete:
        open(unfinished, "w", encoding="utf-8").close()
    for split in source.splits:
        folder = dest if len(source.splits) == 1 else os.path.join(dest, split)
        get_split(getter, journal, split, folder, options.shard << 20, progress)
        counts[folder] = getter.counts
    progress.end()
    if not journal.is_complete:
        extensions = sorted({what[7:] for of in counts.values() for what in of if what.startswith("images ")} - {"bin"})
        os.remove(unfinished)
        if not extensions:
            fail(f"{options.source} has no image")
        run(transcode, "index", "--quiet", *(["--image-extension", ",".join(extensions)] if getter.further else []), dest)
        journal.add({"split": None, "complete": True})
    for folder, of in counts.items():
        summary(folder, of)


# ---- twin

UNIT_BYTES = 64 << 20  # size of the row groups that are encoded together
OURS = ("--container", "--part", "--ranks", "--prune", "--force", "-f", "--facts", "--shuffle", "--shard", "--shards",
        "--label-field", "--image-extension", "--samples")
FACTS = "dl2-twin.json"
KEPT, LEFT = "kept", "left"


class Variant:
    """Images that dl2-transcode made of the shards that get wrote, or of row groups; `about` is their dl2-variant.json."""

    def __init__(self, folder, has_splits=False):
        self.has_splits = has_splits
        try:
            with open(os.path.join(folder, "dl2-variant.json"), encoding="utf-8") as file:
                self.about = json.load(file)
        except OSError as error:
            fail(f"{folder} is no variant of dl2-transcode on this machine: {error}")
        packed = self.about.get("container")
        if not self.about["complete"] or packed not in (None, "tar", "gulp"):
            fail(f"{folder} is " + (f"in {packed}: copy" if self.about["complete"] else "unfinished: make")
                 + " it into a folder or shards by dl2-transcode")
        members = dict(self._members(folder, packed)) if packed else {}
        self.images, self.opened = {}, (None, None)
        with open(os.path.join(folder, "dl2-variant.jsonl"), encoding="utf-8") as lines:
            for line in map(json.loads, lines):
                at = members[line["key"]] if packed else (os.path.join(folder, line["path"]), 0)
                self.images[self._number(line["key"])] = (*at, line["bytes"], line["source_bytes"], line.get("copied", False))
        self.errors = {self._number(posixpath.splitext(one["path"])[0]): one["error"] for one in self.about["failed"]}

    @staticmethod
    def _members(folder, packed):
        """(key, (file, offset)) of its images."""
        for parent, _, names in os.walk(folder):
            below = os.path.relpath(parent, folder)
            for name in names:
                path = os.path.join(parent, name)
                if packed == "tar" and name.endswith(".tar"):
                    with tarfile.open(path) as shard:
                        for member in shard:
                            key, extension = posixpath.splitext(posixpath.normpath(posixpath.join(below, member.name)))
                            if extension[1:] not in ("cls", "json") and "." not in posixpath.basename(key):
                                yield key, (path, member.offset_data)
                elif packed == "gulp" and name.endswith(".gmeta"):
                    data = os.path.join(parent, name.replace("meta_", "data_").replace(".gmeta", ".gulp"))
                    with open(path, encoding="utf-8") as file:
                        for key, about in json.load(file).items():
                            yield posixpath.normpath(posixpath.join(below, key)), (data, about["frame_info"][0][0])

    def _number(self, key):
        """get writes [SPLIT/][CLASS/]NUMBER."""
        parts = key.split("/")
        return parts[0] if self.has_splits else None, int(parts[-1]) if parts[-1].isdigit() else -1

    def image(self, split, number, source, place):
        """The bytes of an image, KEPT if they are to be the source's own, or the reason why there is none."""
        key = (split if self.has_splits else None, number)
        if key not in self.images:
            return LEFT, self.errors.get(key, "the variant lacks it")
        path, offset, size, source_bytes, copied = self.images[key]
        if source_bytes != len(source):
            fail(f"{place} has an image of {len(source)} bytes, and the variant was made of one of {source_bytes} there")
        if copied:
            return KEPT, None
        if self.opened[0] != path:
            self.opened = path, open(path, "rb")
        return os.pread(self.opened[1].fileno(), size, offset), None


def units_of(metadata):
    """The row groups of a file, in lists of about UNIT_BYTES each."""
    units, filled = [], UNIT_BYTES
    for group in range(metadata.num_row_groups):
        if filled >= UNIT_BYTES:
            units, filled = units + [[]], 0
        units[-1].append(group)
        about = metadata.row_group(group)
        filled += sum(about.column(i).total_compressed_size for i in range(about.num_columns))
    return units


class Twin:
    def __init__(self, source, places, encoder, variant, work):
        self.source, self.places, self.encoder, self.variant, self.work = source, places, encoder, variant, work
        self.transcode = program("dl2-transcode")
        self.counts, self.errors = {}, []

    def _extract(self, batches, folder):
        """Writes the images that are to be encoded, in the order in which `replaced` comes to them, and returns their number."""
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(f"{folder}/images")
        count = 0
        with open(f"{folder}/images/shard-000000.tar", "wb", buffering=1 << 20) as shard:
            for batch, place in itertools.product(batches, self.places):
                for data in parts_of(place.open(batch)[0])[0]:
                    if data.is_valid and format_of(data.as_buffer()):
                        shard.writelines(tar_member(f"{count:09d}.{format_of(data.as_buffer())}", data.as_buffer()))
                        count += 1
            shard.write(bytes(1024))
        return count

    def _finish(self, folder, process):
        said = process.communicate()[1] if process else ""
        if process and process.returncode not in (0, 1):
            fail(f"dl2-transcode ended with exit status {process.returncode}: {said.strip()}")
        shutil.rmtree(f"{folder}/images", ignore_errors=True)
        made = glob.glob(f"{glob.escape(folder)}/made/*/")
        return Variant(made[0]) if made else None

    def _group(self, path, source, group):
        """The batches of a row group; one that has no rows has none."""
        return [batch for _, batch in self.source.batches(path, source, groups=[group])]

    def encoded(self, path, source):
        """The units of a file as (the batches of each of their row groups, their Variant or None), of which the next one is
        encoded meanwhile."""
        under_way = None
        for unit, numbers in enumerate(units_of(source.metadata)):
            folder, process = f"{self.work}/{self.source.paths.index(path)}-{unit}", None
            groups = [self._group(path, source, group) for group in numbers]
            is_done = os.path.isdir(folder) and not os.path.isdir(f"{folder}/images")  # by a run that was killed later
            count = 0 if is_done else self._extract(itertools.chain(*groups), folder)
            variant = under_way and self._finish(*under_way[1:])
            if count:
                process = subprocess.Popen([self.transcode, *self.encoder, "--container=gulp", "--quiet", f"{folder}/images",
                                            f"{folder}/made"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if under_way:
                yield under_way[0], variant
            under_way = groups, folder, process
        if under_way:
            yield under_way[0], self._finish(*under_way[1:])

    def count(self, what, number=1):
        self.counts[what] = self.counts.get(what, 0) + number

    def replaced(self, batch, path, at, image):
        """A batch, from row `at` on, with other images; `image(its number in the batch, its bytes, where it is)` gives bytes,
        KEPT or LEFT, and a reason."""
        columns = {name: batch.column(name) for name in self.source.schema.names}
        for place in self.places:
            images, put = opened(columns[place.column], place.steps)
            data, paths = parts_of(images)
            new, names = [], [None] * len(images)
            if paths is not None:
                names = python_of(paths, f"{path}, rows from {at} on, column {place.text}")
            for i, old in enumerate(data):
                old, made, reason = old.as_buffer(), LEFT, None
                where = f"{path}, row {at + i if place.is_single else f'{at} or later'}, column {place.text}"
                if old is None:
                    self.count("named by paths" if names[i] else "null")
                elif not format_of(old):
                    reason = f"it begins with {bytes(old[:8]).hex(' ')}"
                else:
                    made, reason = image(i, old, where)
                if old is not None:
                    self.count("images")
                    self.count("source_bytes", len(old))
                    self.count("encoded" if isinstance(made, bytes) else made)
                    if made is LEFT:
                        self.errors.append(f"{where}: {reason}")
                    made = made if isinstance(made, bytes) else old.to_pybytes()
                    self.count("bytes", len(made))
                    if len(made) > len(old):
                        self.count("larger")
                    if names[i] and extension_of(names[i]) in EXTENSIONS and \
                            normal(extension_of(names[i])) == format_of(old) != format_of(made):
                        names[i] = posixpath.splitext(names[i])[0] + "." + format_of(made)
                new.append(made if old is not None else None)
            leaf = pa.array(new, data.type)
            if paths is not None:
                parts = {"bytes": leaf, "path": pa.array(names, paths.type)}
                leaf = pa.StructArray.from_arrays([parts[field.name] for field in images.type], fields=list(images.type),
                                                  mask=images.is_null())
            columns[place.column] = put(leaf)
        return pa.RecordBatch.from_arrays(list(columns.values()), schema=self.source.schema)

    def write(self, path, split, first, dest):
        """Writes the twin of one file; `first` is the number of its first row in the split."""
        source = self.source.parquet(path)
        units = self.encoded(path, source)
        if self.variant:
            units = [((self._group(path, source, group) for group in range(source.num_row_groups)), self.variant)]
        os.makedirs(os.path.dirname(dest), exist_ok=True)
        at, variants = 0, []
        with open_writer(dest + ".new", self.source.schema, source, writer_options(source, path)) as writer:
            for groups, variant in units:
                variants.append(variant)
                taken = itertools.count()
                for group in groups:
                    batches = []
                    for batch in group:
                        def image(i, old, where, row=at):
                            number = first + row + i if self.variant else next(taken)
                            return variant.image(split, number, old, where)
                        batches.append(self.replaced(batch, path, at, image))
                        at += batch.num_rows
                    table = pa.Table.from_batches(batches, self.source.schema)
                    writer.write_table(table, row_group_size=max(1, table.num_rows))
        made = pq.ParquetFile(dest + ".new")
        differ = differences(source, made)
        if differ:
            fail(f"{path}: pyarrow writes another {differ[0]}")
        return variants


def differences(source, made, groups=True):
    """What differs between two Parquet files but their values."""
    def keys(file):
        return {key: value for key, value in (file.metadata.metadata or {}).items() if key != b"ARROW:schema"}

    def rows(file):
        return [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    return [what for what, differ in (("schema of `datasets` and Arrow", not made.schema_arrow.equals(source.schema_arrow, True)),
                                      ("schema of Parquet", not made.schema.equals(source.schema)),
                                      ("metadata", keys(made) != keys(source)),
                                      ("division into row groups", groups and rows(made) != rows(source))) if differ]


def open_writer(where, schema, file, options):
    """A ParquetWriter of these options, and of the file's metadata that Arrow's schema lacks: `datasets` adds such."""
    writer = pq.ParquetWriter(where, schema, **options)
    known = {b"ARROW:schema", *(schema.metadata or {})}
    writer.add_key_value_metadata({key: value for key, value in (file.metadata.metadata or {}).items() if key not in known})
    return writer


def writer_options(file, path):
    """What makes ParquetWriter write a file like this one; chunks and a page index are those of `datasets`, for the Hub."""
    about = file.metadata
    columns = [about.row_group(0).column(i) for i in range(about.num_columns)] if about.num_row_groups else []
    chunks = json.loads((about.metadata or {}).get(b"content_defined_chunking", b"null"))
    options = {"compression": {one.path_in_schema: one.compression.replace("UNCOMPRESSED", "NONE") for one in columns} or "snappy",
               "use_dictionary": [one.path_in_schema for one in columns if any("DICTIONARY" in name for name in one.encodings)],
               "write_statistics": [one.path_in_schema for one in columns if one.is_stats_set],
               "sorting_columns": about.row_group(0).sorting_columns or None if columns else None,
               "store_schema": b"ARROW:schema" in (about.metadata or {}), "write_page_index": True,
               "use_content_defined_chunking": chunks or {"min_chunk_size": 1 << 18, "max_chunk_size": 1 << 20, "norm_level": 0}}
    for nested, release, int96 in itertools.product((True, False), ("2.6", "2.4", "1.0"), (False, True)):
        of_form = {"use_compliant_nested_type": nested, "version": release, "use_deprecated_int96_timestamps": int96}
        empty = io.BytesIO()
        open_writer(empty, file.schema_arrow, file, {**options, **of_form}).close()
        if not differences(file, pq.ParquetFile(empty), groups=False):
            return {**options, **of_form}
    return fail(f"{path} has a schema that pyarrow reads and does not write alike: {file.schema}")


def added(left, right):
    """The sum of two objects of JSON: numbers are added up, and what only one has stays."""
    if isinstance(left, dict) and isinstance(right, dict):
        return {key: added(left.get(key), right.get(key)) for key in {**left, **right}}
    return right if left is None else left if right is None else left + right


def digest_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def twin(options, encoder):
    source = Source(options.source, options.config)
    first, further = source.choose_places(options.image and options.image.split(","))
    dest, transcode = options.dest.rstrip("/"), program("dl2-transcode")
    variant = Variant(options.variant, len(source.splits) > 1) if options.variant else None
    if variant and (encoder or len(first) > 1 or not first[0].is_single):
        fail("--variant takes the place of options that encode, and has the images of one column, which is no list")
    if not variant:
        listed = subprocess.run([transcode, "--list", "variants", *encoder], stdout=subprocess.PIPE, text=True, check=False)
        names = [line.split("\t")[0] for line in listed.stdout.splitlines()]
        if listed.returncode or len(names) != 1:
            fail(f"a twin has one variant, and {' '.join(encoder) or 'without options'} makes {', '.join(names) or 'none'}: "
                 "name one codec, one quality and one size, as by --codec jpeg --q 30")
    makes = {"source": options.source, "files": source.stamp, "images": [place.text for place in first], "options": encoder,
             "variant": variant and [os.path.realpath(options.variant), variant.about["images"], variant.about["bytes"]],
             "dl2": version()}
    made_of = hashlib.sha256(json.dumps(makes).encode()).hexdigest()
    if os.path.exists(os.path.join(dest, FACTS)):
        facts = read_facts(dest)
        if facts["made_of"] != made_of:
            fail(f"{dest} has a twin of other files, by other options or by another version of dl2: remove it, or name "
                 "another folder")
    else:
        facts = make_twin(dest, options.quiet, source, (first, further), encoder, variant, makes)
        facts["made_of"] = made_of
    if options.study:
        facts["study"] = read_study(options.study, facts)
    write_card(dest, facts, source)
    report_twin(dest, facts)
    return 1 if facts["images"].get(LEFT) else 0


def make_twin(dest, quiet, source, places, encoder, variant, makes):
    """Writes the Parquet files that the journal lacks, and returns what dl2-twin.json has of them."""
    journal, work = Journal(dest, makes), os.path.join(dest, ".dl2-hub-work")
    maker = Twin(source, places[0], encoder, variant, work)
    done = {line["file"]["path"]: line for line in journal.lines}
    progress = Progress(quiet, len(source.paths))
    for split, paths in source.splits.items():
        first = 0
        for path in paths:
            if path not in done:
                maker.counts, maker.errors = {}, []
                whole = os.path.join(dest, path)
                variants = maker.write(path, split, first, whole)
                about = {}
                for one in filter(None, variants):
                    about = {**about, **{key: one.about[key] for key in ("variant", "codec", "quality", "options", "libraries")},
                             "colors": added(about.get("colors", {}), one.about.get("colors", {}))}
                size, digest = os.path.getsize(whole + ".new"), digest_of(whole + ".new")
                os.replace(whole + ".new", whole)
                done[path] = {"file": {"path": path, "split": split, "rows": source.rows[path], "bytes": size, "sha256": digest,
                                       "source_bytes": int(source.stamp[source.paths.index(path)][1])},
                              "counts": maker.counts, "errors": maker.errors[:100], "about": about}
                journal.add(done[path])
                shutil.rmtree(work, ignore_errors=True)
            first += source.rows[path]
            progress.show(len(done), f"files of {source.address}")
    progress.end()
    shutil.rmtree(work, ignore_errors=True)  # what a run left that was killed after its last file
    lines = [done[path] for path in source.paths]
    counts = functools.reduce(added, (line["counts"] for line in lines), {})
    about = next((line["about"] for line in reversed(lines) if line["about"]), {})
    if variant is None:
        about["colors"] = functools.reduce(added, (line["about"].get("colors", {}) for line in lines), {})
    return {"schema": "dl2-twin/1", "source": source.address, "commit": source.commit, **about,
            "arguments": encoder, "dl2": makes["dl2"], "columns": makes["images"],
            "columns_that_stay": [place.text for place in places[1]], "images": counts,
            "errors": [error for line in lines for error in line["errors"]][:100], "files": [line["file"] for line in lines]}


def read_facts(folder):
    try:
        with open(os.path.join(folder, FACTS), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        return fail(f"{folder} is no twin of dl2-hub: {error}")


def report_twin(dest, facts):
    of = {"images": 0, "encoded": 0, KEPT: 0, LEFT: 0, "bytes": 0, "source_bytes": 0, **facts["images"]}
    print(f"{dest}: {facts.get('variant')}: {of['images']} images, {of['encoded']} encoded, {of[KEPT]} as they were because they "
          f"would not be smaller; {of['bytes']} bytes, {of['bytes'] / max(1, of['source_bytes']):.1%} of the source's images; "
          f"{sum(file['bytes'] for file in facts['files'])} bytes of files, of {sum(file['source_bytes'] for file in facts['files'])}")
    if of.get("larger"):
        print(f"  {of['larger']} images are larger than their sources, which are of another format")
    for what in ("null", "named by paths"):
        if of.get(what):
            print(f"  {of[what]} images are {what}, and stay so")
    if facts["columns_that_stay"]:
        print(f"  columns of images that stay as they are: {', '.join(facts['columns_that_stay'])}; --image A,B names those to encode")
    for what, names in facts.get("colors", {}).items():
        print(f"  colors {what}: " + ", ".join(f"{name} of {number}" for name, number in names.items()))
    if of[LEFT]:
        warn(f"{of[LEFT]} images stay as they are because they cannot be encoded; the first: {facts['errors'][0]}")


# ---- The card

BEGIN, END = "<!-- dl2-twin: made by dl2-hub, and checked by dl2-hub verify -->", "<!-- end of dl2-twin -->"


def sentences(answer):
    """What the answer of a study says: its notes, and of each network what to use and what is open."""
    networks = answer["networks"]
    return answer["notes"] + [text for name, network in networks.items() for text in
                              (f"{name}:" if len(networks) > 1 else None, network["smallest"]["text"], network["open"]) if text]


def read_study(folder, facts):
    """What a study says of the variant that the twin has: of answer.json and study-plan.json."""
    at = os.path.join(folder, "report", "answer.json")
    try:
        with open(at, encoding="utf-8") as file:
            answer = json.load(file)
        with open(os.path.join(folder, "study-plan.json"), encoding="utf-8") as file:
            settings = json.load(file)["settings"]
        told = sentences(answer)
    except (OSError, ValueError, KeyError) as error:
        fail(f"{folder} is no finished study: {error}")
    name, of = facts.get("variant"), answer["variants"]
    if name not in of:
        fail(f"{at} has no variant {name}, but {', '.join(of)}")
    counts = facts["images"]
    for variant, size in (("raw", counts["source_bytes"]), (name, counts["bytes"])):
        there = of[variant]
        for what, ours in (("images", counts["images"] - counts.get(LEFT, 0)), ("bytes", size)):
            if there[what] is not None and there[what] != ours:
                fail(f"{at} is about other images: its {variant} has {there[what]} {what}, and the twin {ours}")
    networks = {network: {**{key: result["variants"][name].get(key) for key in ("accuracy", "difference", "interval", "seeds", "verdict")},
                          "source_accuracy": result["variants"]["raw"]["accuracy"]}
                for network, result in answer["networks"].items() if name in result["variants"]}
    return {"sentences": told, "accuracy": answer["accuracy"], "tolerance": answer["tolerance"],
            "networks": networks, "scores": {key: of[name].get(key) for key in ("psnr_rgb", "ssim")},
            "trained": {key: settings[key] for key in ("archs", "epochs", "seeds", "image-size", "batch") if key in settings}}


def number(value, digits=1):
    return "-" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.{digits}f}"


def certificate(facts, title):
    """What the card says, as Markdown."""
    of, files = {"encoded": 0, KEPT: 0, **facts["images"]}, facts["files"]
    name = f"[{title}](https://huggingface.co/datasets/{title})" if facts["commit"] else title
    text = [BEGIN, f"# {title}, with images as {facts.get('variant')}", "",
            f"The rows, columns, splits and row groups of {name}" + (f" at commit `{facts['commit']}`" if facts["commit"] else "")
            + f", with smaller images: column {', '.join(facts['columns'])}. All other values are the same.", "",
            "| | source | twin |", "|---|---|---|",
            f"| images | {number(of['images'])} | {number(of['images'])} |",
            f"| bytes of images | {number(of['source_bytes'])} | {number(of['bytes'])} |",
            f"| bytes of files | {number(sum(file['source_bytes'] for file in files))} | {number(sum(file['bytes'] for file in files))} |",
            "", f"- {number(of['encoded'])} images are encoded, {number(of[KEPT])} stay as they are because they would not be smaller"
            + (f", {number(of[LEFT])} because they cannot be encoded" if of.get(LEFT) else "")]
    text += [f"- columns of images that stay as they are: {', '.join(facts['columns_that_stay'])}"] if facts["columns_that_stay"] else []
    text += [f"- colors and more that are {what}: " + ", ".join(f"{name} of {count}" for name, count in names.items())
             for what, names in facts.get("colors", {}).items()]
    library = facts.get("libraries", {}).get(facts.get("codec"))
    text += [f"- made by dl2 {facts['dl2']}" + (f" with {library}" if library else "") +
             (f", by `dl2-hub twin {' '.join(facts['arguments'])}`" if facts["arguments"] else ""), ""]
    study = facts.get("study")
    if study:
        text += ["## What it costs", "", *study["sentences"], "",
                 f"| network | seeds | {study['accuracy']} of the source | of the twin | difference, points | 95% interval | verdict |",
                 "|---|---|---|---|---|---|---|"]
        for network, result in study["networks"].items():
            interval = " to ".join(number(end, 2) for end in result["interval"] or [None, None])
            text += [f"| {network} | {number(result['seeds'])} | {number(result['source_accuracy'], 2)} | {number(result['accuracy'], 2)} | "
                     f"{number(result['difference'], 2)} | {interval} | {result['verdict']} |"]
        trained = ", ".join(f"{key} {' '.join(map(str, value)) if isinstance(value, list) else value}"
                            for key, value in study["trained"].items())
        text += ["", f"The tolerance is {number(study['tolerance'])} points. Trained: {trained}. Mean scores of the images: PSNR "
                 f"{number(study['scores']['psnr_rgb'], 2)} dB, SSIM {number(study['scores']['ssim'], 4)}.", ""]
    text += ["## Check sums", "", "| file | rows | SHA-256 |", "|---|---|---|",
             *(f"| {file['path']} | {number(file['rows'])} | `{file['sha256']}` |" for file in files), "",
             f"`dl2-hub verify TWIN {facts['source'] if facts['commit'] else 'SOURCE'}` compares the twin with its source.", END]
    return "\n".join(text) + "\n"


def title_of(source):
    return re.sub(r"^hf://datasets/|@.*", "", source.address) if source.commit else posixpath.basename(source.root)


def without_sizes(value):
    """What a card says of a dataset, without what does not hold for its twin."""
    sizes = ("download_size", "dataset_size", "num_bytes")
    if isinstance(value, dict):
        return {key: without_sizes(inner) for key, inner in value.items() if key not in sizes}
    return [without_sizes(inner) for inner in value] if isinstance(value, list) else value


def write_card(dest, facts, source):
    """README.md: the source's front matter without sizes, the certificate, the source's own text; then dl2-twin.json."""
    facts["certificate"] = certificate(facts, title_of(source))
    card = dict(source.card)
    if "dataset_info" in card:
        card["dataset_info"] = without_sizes(card["dataset_info"])
    front = yaml.safe_dump(card, sort_keys=False, allow_unicode=True) if card else ""
    rest = re.sub(r"\A---\s*\n.*?^---\s*\n", "", source.card_text, count=1, flags=re.S | re.M).strip() if card else source.card_text
    text = (f"---\n{front}---\n" if front else "") + facts["certificate"] + (f"\n## The source's card\n\n{rest}\n" if rest else "")
    for name, content in (("README.md", text), (FACTS, json.dumps(facts, indent=2) + "\n")):
        with open(os.path.join(dest, name + ".new"), "w", encoding="utf-8") as file:
            file.write(content)
        os.replace(os.path.join(dest, name + ".new"), os.path.join(dest, name))
    journal = os.path.join(dest, Journal.NAME)
    if os.path.exists(journal):
        os.remove(journal)


# ---- verify

TOLERANCES = {"psnr_rgb": 0.01, "ssim": 0.0001}  # of mean scores: a study's report has rounded ones


class Verifier:
    """Compares a twin with its source; `problems` are what differs from what the card says."""

    def __init__(self, folder, source):
        self.folder, self.source, self.facts, self.problems = folder, source, read_facts(folder), []
        self.quality = program("dl2-quality")
        self.places = [place for place in source.places if place.text in self.facts["columns"]]
        self.counts, self.scores = {"images": 0, "encoded": 0, KEPT: 0, "bytes": 0, "source_bytes": 0}, {}

    def check(self, holds, problem):
        if not holds and problem not in self.problems:
            self.problems.append(problem)

    def bare(self, batch):
        """A batch of what a twin shares with its source: whether there is an image, and its path without extension."""
        columns = {name: batch.column(name) for name in self.source.schema.names}
        for place in self.places:
            images, put = opened(columns[place.column], place.steps)
            data, paths = parts_of(images)
            leaf = pc.is_valid(data)
            if paths is not None:
                stems = [path and posixpath.splitext(path)[0] if path and extension_of(path) in EXTENSIONS else path
                         for path in paths.to_pylist()]
                leaf = pa.StructArray.from_arrays([leaf, pa.array(stems, pa.string())], ["is", "path"], mask=images.is_null())
            columns[place.column] = put(leaf)
        return columns

    def file(self, path, facts, work):
        whole = os.path.join(self.folder, path)
        if not os.path.isfile(whole):
            return self.check(False, f"{whole} is not there")
        self.check(digest_of(whole) == facts["sha256"], f"{whole} has another check sum than the card says")
        source, made = self.source.parquet(path), pq.ParquetFile(whole, buffer_size=BUFFER_BYTES, pre_buffer=False)
        differ = differences(source, made)
        for what in differ:
            self.check(False, f"{whole} has another {what} than its source")
        if differ:
            return None
        pairs = zip(self.source.batches(path, source), self.source.batches(whole, made, sizes=source.metadata))
        shards, number, filled, self.equal = None, 0, 0, set()
        for (at, old), (_, new) in pairs:
            theirs, ours = self.bare(old), self.bare(new)
            for name in theirs:
                self.check(theirs[name].equals(ours[name]) or repr(theirs[name].to_pylist()) == repr(ours[name].to_pylist()),
                           f"{whole} has other values than its source in column {name}, rows from {at} on")
            for place in self.places:
                for before, after in zip(parts_of(place.open(old)[0])[0], parts_of(place.open(new)[0])[0]):
                    if not (before.is_valid and after.is_valid):
                        continue
                    before, after = before.as_buffer(), after.as_buffer()
                    for what, count in (("images", 1), ("source_bytes", len(before)), ("bytes", len(after)),
                                        (KEPT if before.equals(after) else "encoded", 1)):
                        self.counts[what] += count
                    if format_of(before) and format_of(after):
                        shards = shards or [open(os.path.join(folder, "shard-000000.tar"), "wb") for folder in work]
                        for shard, data in zip(shards, (before, after)):
                            shard.writelines(tar_member(f"{number:09d}.{format_of(data)}", data))
                        self.equal |= {number} if before.equals(after) else set()
                        number, filled = number + 1, filled + len(before)
            if shards and filled > UNIT_BYTES:
                shards, filled = self.score(shards, work, whole), 0
        return shards and self.score(shards, work, whole)

    def score(self, shards, work, whole):
        for shard in shards:
            shard.write(bytes(1024))
            shard.close()
        with open(os.path.join(work[1], "dl2-variant.json"), "w", encoding="utf-8") as file:
            json.dump({"schema": "dl2-variant/1", "complete": True, "container": "tar", "images": 0,
                       **{key: self.facts[key] for key in ("variant", "codec", "quality", "options")}}, file)
        report = work[1] + ".json"
        done = subprocess.run([self.quality, "--quiet", "--json", report, *work], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, check=False)
        if not os.path.exists(report):
            fail(f"dl2-quality ended with exit status {done.returncode}: {done.stderr.strip()}")
        with open(report, encoding="utf-8") as file:
            variant = json.load(file)["variants"][0]
        os.remove(report)  # the next shard's is not to be taken for this one
        for what in ("mismatched", "failed"):
            for one in variant.get(what, []):
                self.check(int(one["key"]) in self.equal, f"{whole}, image {int(one['key'])}: {one['error']}")
        for metric in TOLERANCES:
            found = variant["metrics"].get(metric, {})
            total, images = self.scores.get(metric, (0, 0))
            if found.get("mean") is not None:
                self.scores[metric] = total + found["mean"] * found["images"], images + found["images"]


def verify(options):
    source = Source(options.source, options.config)
    twin_of = Verifier(options.twin.rstrip("/"), source)
    facts = twin_of.facts
    with open(os.path.join(options.twin, "README.md"), encoding="utf-8") as file:
        twin_of.check(facts["certificate"] in file.read(), f"{options.twin}/README.md has another certificate than {FACTS}")
    twin_of.check(certificate(facts, title_of(source)) == facts["certificate"] or facts["commit"] != source.commit,
                  f"the certificate in {options.twin}/{FACTS} is not that of its figures")
    files = {file["path"]: file for file in facts["files"]}
    twin_of.check(list(files) == source.paths, f"{options.twin} has other files than {source.address}: "
                  f"{', '.join(sorted(set(files) ^ set(source.paths))) or 'their order'}")
    with tempfile.TemporaryDirectory(prefix="dl2-hub-") as work:
        folders = [os.path.join(work, name) for name in ("source", "twin")]
        for folder in folders:
            os.mkdir(folder)
        for path in source.paths:
            if path in files:
                twin_of.file(path, files[path], folders)
    for what, count in twin_of.counts.items():
        said = facts["images"].get(what, 0) + (facts["images"].get(LEFT, 0) if what == KEPT else 0)
        twin_of.check(said == count, f"the card says {said} of {what}, and there are {count}")
    scores = {metric: total / images for metric, (total, images) in twin_of.scores.items()}
    for metric, tolerance in TOLERANCES.items():
        said = (facts.get("study") or {}).get("scores", {}).get(metric)
        twin_of.check(said is None or abs(said - scores.get(metric, 1e9)) <= tolerance,
                      f"the card says a mean {metric} of {said}, and it is {scores.get(metric)}")
    for problem in twin_of.problems:
        warn(problem)
    if not twin_of.problems:
        print(f"{options.twin}: {sum(source.rows.values())} rows and {twin_of.counts['images']} images are as the card says; "
              + ", ".join(f"mean {metric} {score:.4f}" for metric, score in scores.items()))
    return 1 if twin_of.problems else 0


def main():
    parser = argparse.ArgumentParser(prog="dl2-hub", description=__doc__.split("\n\n")[0], allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    shared, written = (argparse.ArgumentParser(add_help=False) for _ in range(2))
    shared.add_argument("source", help="Parquet file, folder, pattern, or an address such as hf://datasets/OWNER/NAME")
    shared.add_argument("--config", help="configuration of the dataset's card [its default]")
    written.add_argument("dest", help="folder that is written")
    written.add_argument("--quiet", action="store_true", help="no progress")
    one = commands.add_parser("get", parents=[shared, written], allow_abbrev=False,
                              help="copy rows into shards that every program of dl2 reads")
    one.add_argument("--image", help="column with the images [image and other usual names]")
    one.add_argument("--label", help="column with the classes, or a path to them, a.b [the one of classes, or of a usual name]")
    one.add_argument("--split", help="copy this split alone, into DEST itself")
    one.add_argument("--shard", type=int, default=256, help="MiB in a shard [256]")
    one = commands.add_parser("twin", parents=[shared, written], allow_abbrev=False,
                              help="write the same Parquet files with smaller images",
                              usage="dl2-hub twin SOURCE DEST [OPTION...] [OPTION OF dl2-transcode...]",
                              epilog="All other options are dl2-transcode's, such as --codec jpeg --q 30, and make one variant.")
    one.add_argument("--image", help="columns with the images to encode, with commas [image and other usual names]")
    one.add_argument("--variant", help="variant that dl2-transcode has made of what get wrote, in the place of options that encode")
    one.add_argument("--study", help="folder of a study, whose answer the twin's card is to have")
    one = argparse.ArgumentParser(add_help=False)
    one.add_argument("twin", help="folder of the twin")
    commands.add_parser("verify", parents=[one, shared], allow_abbrev=False, help="compare a twin with its source and with its card")
    parser.add_argument("--version", action="store_true", help="print the version of dl2")
    if sys.argv[1:] == ["--help=all"]:
        print(parser.format_help(), *(f"{name}: {one.format_help()}" for name, one in commands.choices.items()), sep="\n", end="")
        return 0
    if sys.argv[1:] == ["--completion"]:
        words = {word for one in (parser, *commands.choices.values()) for action in one._actions for word in action.option_strings}
        print(f"complete -o default -W '{' '.join([*commands.choices, *sorted(words)])}' dl2-hub")
        return 0
    if sys.argv[1:] == ["--version"]:
        print(f"dl2-hub (dl2) {version()}")
        return 0
    if sys.argv[1:2] == ["twin"] and any(word.startswith("-") for word in sys.argv[2:4]) and not {"-h", "--help"} & set(sys.argv):
        parser.error("twin: SOURCE and DEST come first, then options")
    options, encoder = parser.parse_known_args()
    if encoder and (options.command != "twin" or set(word.split("=")[0] for word in encoder) & set(OURS)):
        parser.error(f"{options.command} has no such options: {' '.join(encoder)}")
    if ABSENT:
        fail(f"{sys.executable} has no {ABSENT}: {NEEDS}")
    try:
        return twin(options, encoder) if options.command == "twin" else {"get": get, "verify": verify}[options.command](options)
    except (OSError, pa.ArrowException) as error:
        fail(error)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    sys.exit(main())
