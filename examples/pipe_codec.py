#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""An external codec that stays between images, for codecs that take long to start, such as learned ones:

    $ dl2-transcode --codec 'zipped=pipe:python3 pipe_codec.py; pipe:python3 pipe_codec.py' --q 20,50 photos variants
    $ dl2-quality --decoder 'zipped=pipe:python3 pipe_codec.py' photos variants/zipped-50

dl2 starts a process for each worker thread, which loads its model once. Replace encode() and decode(): these quantize
pixels and compress them by zlib, or with --jpegxr are JPEG XR (PyPI: imagecodecs, numpy). Print messages to sys.stderr:
standard output is for answers.

One process for all workers, which computes the images that wait as one batch, suits a model on a card:

    $ python3 pipe_codec.py --listen codec.sock &
    $ connect='pipe:python3 pipe_codec.py --connect codec.sock'
    $ dl2-transcode -j 16 --codec "zipped=$connect; $connect" --q 20,50 photos variants
"""
import argparse
import queue
import socket
import sys
import threading
import zlib

BATCH = 16  # images at most


def encode(width, height, channels, quality, pixels):
    """Pixels (8 bits a sample, interleaved, row by row) at a quality of 1 to 100 to the bytes of a file."""
    step = 1 + (100 - quality) // 4
    table = bytes(min(255, value // step * step + step // 2) for value in range(256))
    return zlib.compress(pixels.translate(table))


def decode(width, height, channels, file):
    """The bytes of a file to pixels, as encode() has them."""
    return zlib.decompress(file)


def encode_jpegxr(width, height, channels, quality, pixels):
    import imagecodecs, numpy
    shape = (height, width, channels)[: 3 if channels > 1 else 2]
    return imagecodecs.jpegxr_encode(numpy.frombuffer(pixels, numpy.uint8).reshape(shape), level=quality)


def decode_jpegxr(width, height, channels, file):
    import imagecodecs
    return imagecodecs.jpegxr_decode(file).tobytes()


def compute(batch):
    """What is asked for, [(b"encode" or b"decode", its arguments)...], to a list of bytes or exceptions. A model takes the
    images of one size, or padded ones, at once here."""
    results = []
    for what, arguments in batch:
        try:
            results.append(encode(*arguments) if what == b"encode" else decode(*arguments))
        except Exception as error:
            results.append(error)
    return results


def read(source):
    """The next request: its number, what it asks for and the arguments; None at the end."""
    words = source.readline().split()
    if not words:
        return None
    number, width, height, channels, last = map(int, words[1:])
    size = width * height * channels if words[0] == b"encode" else last
    data = source.read(size)
    arguments = (width, height, channels, last, data) if words[0] == b"encode" else (width, height, channels, data)
    return number, words[0], arguments


def write(answers, number, result):
    if isinstance(result, Exception):
        answers.write(b"error %d %s\n" % (number, " ".join(str(result).split()).encode()[:400]))
    else:
        answers.write(b"ok %d %d\n" % (number, len(result)) + result)
    answers.flush()


def answer(source, answers):
    """One request after the other."""
    while request := read(source):
        number, what, arguments = request
        write(answers, number, compute([(what, arguments)])[0])


def listen(path):
    """All programs that connect, their requests in batches."""
    waiting = queue.Queue()
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(64)

    def receive(stream):
        while request := read(stream):
            waiting.put((stream, request))

    def accept():
        while True:
            stream = server.accept()[0].makefile("rwb")
            threading.Thread(target=receive, args=[stream], daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    while True:
        batch = [waiting.get()]
        while len(batch) < BATCH and not waiting.empty():
            batch.append(waiting.get())
        results = compute([request[1:] for _, request in batch])
        for (stream, request), result in zip(batch, results):
            try:
                write(stream, request[0], result)
            except OSError:
                pass  # that program has ended


def connect(path):
    """Passes requests on to the process that listens, and its answers back."""
    stream = socket.socket(socket.AF_UNIX)
    stream.connect(path)

    def send():
        while data := sys.stdin.buffer.read1(1 << 20):
            stream.sendall(data)
        stream.shutdown(socket.SHUT_WR)

    threading.Thread(target=send, daemon=True).start()
    while data := stream.recv(1 << 20):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def main():
    global encode, decode
    parser = argparse.ArgumentParser()
    parser.add_argument("--jpegxr", action="store_true")
    parser.add_argument("--listen", metavar="SOCKET")
    parser.add_argument("--connect", metavar="SOCKET")
    options = parser.parse_args()
    if options.jpegxr:
        encode, decode = encode_jpegxr, decode_jpegxr
    if options.listen:
        listen(options.listen)
    elif options.connect:
        connect(options.connect)
    else:
        answer(sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    main()
