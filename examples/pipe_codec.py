#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""An external codec that stays between images, for codecs that take long to start, such as learned ones:

    $ dl2-transcode --codec 'zipped=pipe:python3 pipe_codec.py; pipe:python3 pipe_codec.py' --q 20,50 photos variants
    $ dl2-quality --decoder 'zipped=pipe:python3 pipe_codec.py' photos variants/zipped-50

dl2 starts a process for each worker thread, which loads its model once. Replace encode() and decode(): these quantize
pixels and compress them by zlib. Print messages to sys.stderr: standard output is for answers.
"""
import sys
import zlib


def encode(width, height, channels, quality, pixels):
    """Pixels (8 bits a sample, interleaved, row by row) at a quality of 1 to 100 to the bytes of a file."""
    step = 1 + (100 - quality) // 4
    table = bytes(min(255, value // step * step + step // 2) for value in range(256))
    return zlib.compress(pixels.translate(table))


def decode(width, height, channels, file):
    """The bytes of a file to pixels, as encode() has them."""
    return zlib.decompress(file)


def main():
    source, answers = sys.stdin.buffer, sys.stdout.buffer
    while request := source.readline().split():
        what, (number, width, height, channels, last) = request[0], map(int, request[1:])
        try:
            if what == b"encode":
                answer = encode(width, height, channels, last, source.read(width * height * channels))
            else:
                answer = decode(width, height, channels, source.read(last))
            answers.write(b"ok %d %d\n" % (number, len(answer)) + answer)
        except Exception as error:
            answers.write(b"error %d %s\n" % (number, " ".join(str(error).split()).encode()[:400]))
        answers.flush()


if __name__ == "__main__":
    main()
