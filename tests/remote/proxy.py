#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A proxy for one HTTP server that does what networks and stores do on bad days.

    proxy.py UPSTREAM_PORT FOLDER

listens on a free port of 127.0.0.1, which it writes to FOLDER/port. FOLDER/fault says what happens:
a word, how often, and for which paths: "reset 3 .tar" lets each third request fail of those with
.tar in their paths. FOLDER/log gets a line
a request: the method, the path, the status.
"""
import asyncio
import os
import re
import socket
import struct
import sys

upstream, folder = int(sys.argv[1]), sys.argv[2]
count = 0


def fault(path):
    """The fault of a request: "" for none."""
    global count
    try:
        with open(os.path.join(folder, "fault")) as file:
            words = file.read().split()
    except OSError:
        return ""
    if words[2:] and words[2] not in path:
        return ""
    count += 1
    return words[0] if words and count % int((words + ["1"])[1]) == 0 else ""


def log(*words):
    with open(os.path.join(folder, "log"), "a") as file:
        print(*words, file=file)


async def read_head(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    return first, [line.split(": ", 1) if ": " in line else [line.rstrip(":"), ""] for line in lines]


def value(headers, name):
    return next((text for key, text in headers if key.lower() == name), None)


async def ask(first, headers):
    """The server's answer, on a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", upstream)
    lines = [first] + [f"{k}: {v}" for k, v in headers if k.lower() != "connection"] + ["Connection: close"]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    status, answer = await read_head(reader)
    body = await reader.read(-1)
    if value(answer, "transfer-encoding"):
        whole, rest = b"", body
        while rest:
            size, rest = rest.split(b"\r\n", 1)
            size = int(size, 16)
            whole, rest = whole + rest[:size], rest[size + 2:]
            if not size:
                break
        body = whole
    writer.close()
    drop = ("connection", "content-length", "transfer-encoding")
    return status, [[k, v] for k, v in answer if k.lower() not in drop], body


def reset(writer):
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def put(headers, name, text):
    for header in headers:
        if header[0].lower() == name:
            header[1] = text


async def serve_one(reader, writer):
    first, headers = await read_head(reader)
    method, path, _ = first.split(" ", 2)
    what = fault(path)
    if what == "reset":
        log(method, path, "reset")
        reset(writer)
        return False
    if what == "stall":
        log(method, path, "stall")
        await asyncio.sleep(5)
        return False
    if what in ("busy", "gone", "broken"):
        code = {"busy": "503 Slow Down\r\nRetry-After: 1", "gone": "404 Not Found", "broken": "500 Broken"}[what]
        log(method, path, code[:3])
        writer.write(f"HTTP/1.1 {code}\r\nContent-Length: 0\r\n\r\n".encode())
        return True
    if what == "redirect":
        log(method, path, 302)
        writer.write(f"HTTP/1.1 302 Found\r\nLocation: http://localhost:{upstream}{path}\r\n"
                     "Content-Length: 0\r\n\r\n".encode())
        return True
    if what == "loop":
        log(method, path, 302)
        writer.write(f"HTTP/1.1 302 Found\r\nLocation: {path}\r\nContent-Length: 0\r\n\r\n".encode())
        return True
    if what == "latency":
        await asyncio.sleep(0.02)
    if what == "norange":
        headers = [[k, v] for k, v in headers if k.lower() != "range"]
    status, answer, body = await ask(first, headers)
    announced = len(body)
    if what == "truncated":
        body = body[:len(body) // 2]
    if what == "short":
        body = body[:len(body) // 2]
        announced = len(body)
    if what == "wrong" and " 206 " in status:
        body = body[:-1] + bytes([body[-1] ^ 0x55])
    if what == "shifted":
        text = re.sub(r"bytes (\d+)-(\d+)", lambda m: f"bytes {int(m[1]) + 1}-{int(m[2]) + 1}",
                      value(answer, "content-range") or "")
        put(answer, "content-range", text)
    if what == "changed" and value(answer, "etag"):
        put(answer, "etag", f'"{count}"')
    if what == "star":
        put(answer, "content-range", re.sub(r"/\d+", "/*", value(answer, "content-range") or ""))
    if what == "grown":
        put(answer, "content-range", re.sub(r"/\d+", "/99999999", value(answer, "content-range") or ""))
    log(method, path, status.split(" ")[1], what)
    lines = [status] + [f"{k}: {v}" for k, v in answer] + [f"Content-Length: {announced}"]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + (b"" if method == "HEAD" else body))
    return announced == len(body)


async def serve(reader, writer):
    try:
        while await serve_one(reader, writer):
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        pass
    finally:
        try:
            await writer.drain()
        except ConnectionError:
            pass
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    name = os.path.join(folder, "port")
    with open(name + ".new", "w") as file:
        print(server.sockets[0].getsockname()[1], file=file)
    os.rename(name + ".new", name)
    await server.serve_forever()


asyncio.run(main())
