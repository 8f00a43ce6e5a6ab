# SPDX-License-Identifier: BSD-2-Clause
"""wheel.py FOLDER NAME-VERSION GLIBC LICENSE: packs FOLDER, as it is to lie in site-packages, into a wheel in the current folder.

The distribution is called dl2-images, since another project has dl2's name on PyPI; the import is NAME. The programs in
FOLDER/NAME/libexec become commands. The wheel's tags: CPython's stable ABI of 3.9, and Linux with this
machine's processor and glibc GLIBC or later (PEP 600).
"""
import base64
import hashlib
import os
import platform
import sys
import time
import zipfile

DISTRIBUTION = "dl2-images"
METADATA = """\
Metadata-Version: 2.1
Name: {distribution}
Version: {version}
Summary: Loads images for training, fast; and tells how far a dataset can be compressed
License: BSD-2-Clause
License-File: LICENSE
Requires-Python: >=3.9
Provides-Extra: torch
Requires-Dist: torch >=1.13 ; extra == 'torch'
Requires-Dist: pillow ; extra == 'torch'
Provides-Extra: hub
Requires-Dist: pyarrow >=21 ; extra == 'hub'
Requires-Dist: fsspec ; extra == 'hub'
Requires-Dist: huggingface_hub ; extra == 'hub'
Requires-Dist: pyyaml ; extra == 'hub'
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C
Classifier: Programming Language :: Python :: 3
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

`import dl2` is the input pipeline, `import dl2.torch` the same for PyTorch. The commands `dl2-load`,
`dl2-transcode`, `dl2-quality`, `dl2-train` and `dl2-report` have `--help`. `dl2-hub`, for Parquet files, needs
`pip install 'dl2-images[hub]'`.

Libraries inside, whose licenses lie in `dl2/share/licenses`:

{libraries}
"""


def main() -> None:
    folder, project, glibc, license = sys.argv[1:]
    name, version = project.rsplit("-", 1)
    tag = f"cp39-abi3-manylinux_{glibc.replace('.', '_')}_{platform.machine()}"
    distribution = DISTRIBUTION.replace("-", "_")
    info = f"{distribution}-{version}.dist-info"
    with open(os.path.join(folder, name, "share/licenses/LIBRARIES"), encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    commands = sorted(file for file in os.listdir(os.path.join(folder, name, "libexec")) if file.startswith("dl2-"))
    with open(license, "rb") as file:
        license_text = file.read()
    libraries = "\n".join(f"- {library}: {package} {package_version}" for library, package, package_version, _ in rows)
    texts = {
        "METADATA": METADATA.format(distribution=DISTRIBUTION, version=version, libraries=libraries).encode(),
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: dl2 ({version})\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
        "entry_points.txt": "".join(["[console_scripts]\n", f"dl2-hub = {name}.hub:main\n"] +
                                    [f"{command} = {name}._programs:main\n" for command in commands]).encode(),
        "top_level.txt": f"{name}\n".encode(),
        "LICENSE": license_text,
    }
    date = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", time.time())), 315532800))[:6]  # zip begins in 1980
    records, size = [], 0
    wheel = f"{distribution}-{version}-{tag}.whl"

    def add(archive: zipfile.ZipFile, path: str, content: bytes, mode: int) -> None:
        entry = zipfile.ZipInfo(path, date)
        entry.external_attr = (0o100000 | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        records.append(f"{path},sha256={digest},{len(content)}\n")

    with zipfile.ZipFile(wheel + ".part", "w") as archive:
        for root, folders, files in os.walk(folder):
            folders.sort()
            for file in sorted(files):
                path = os.path.join(root, file)
                with open(path, "rb") as opened:
                    content = opened.read()
                size += len(content)
                add(archive, os.path.relpath(path, folder), content, 0o755 if os.access(path, os.X_OK) else 0o644)
        for file, content in texts.items():
            add(archive, f"{info}/{file}", content, 0o644)
        records.append(f"{info}/RECORD,,\n")
        add(archive, f"{info}/RECORD", "".join(records).encode(), 0o644)
    os.replace(wheel + ".part", wheel)
    print(f"{wheel}: {os.path.getsize(wheel) >> 20} MiB, {size >> 20} MiB installed; for glibc {glibc} and later")


if __name__ == "__main__":
    main()
