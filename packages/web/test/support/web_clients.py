"""Clients of a server, in a process of their own: many connections at once.

    web_clients.py PORT COUNT fresh         connections that send nothing
    web_clients.py PORT COUNT used PATH     one request on each, and then nothing
    web_clients.py PORT COUNT streams PATH  an event stream on each

Prints `ready` when all are open. For streams it then prints, for each line `since NANOSECONDS` of
its input, the microseconds from that time until each stream had a next event. It ends with its
input. The environment variable HOST_HEADER is the header `host`. With TLS=1 connections
are encrypted; with HTTP2=1 those that send nothing have begun HTTP/2.
"""

import os
import resource
import selectors
import socket
import ssl
import sys
import time

port, count, mode = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
host = os.environ.get("HOST_HEADER", f"127.0.0.1:{port}")


http2 = os.environ.get("HTTP2") == "1"
tls = None
if os.environ.get("TLS") == "1":
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname = False
    tls.verify_mode = ssl.CERT_NONE
    if http2:
        tls.set_alpn_protocols(["h2"])


def request(path):
    return f"GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n".encode()


def until(connection, mark, got=b""):
    while mark not in got:
        more = connection.recv(65536)
        if not more:
            sys.exit(f"closed: {got[:200]!r}")
        got += more
    return got


def read(connection):
    got = until(connection, b"\r\n\r\n")
    head, body = got.split(b"\r\n\r\n", 1)
    length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    left = int(length[0].split(b":")[1]) - len(body)
    while left > 0:
        left -= len(connection.recv(left))


connections = []
for _ in range(count):
    connection = socket.create_connection(("127.0.0.1", port))
    if tls:
        connection = tls.wrap_socket(connection)
    connections.append(connection)
    if http2:
        # The preface, and empty settings.
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
        connection.recv(65536)
    if mode != "fresh":
        connection.sendall(request(sys.argv[4]))
    if mode == "used":
        read(connection)
        # About 1,000 a second, as the server holds buffers for a while after each.
        time.sleep(0.001)
if mode == "streams":
    for connection in connections:
        until(connection, b"event: ready")
        connection.setblocking(False)
print("ready", flush=True)

selector = selectors.DefaultSelector()
if mode == "streams":
    for connection in connections:
        selector.register(connection, selectors.EVENT_READ)

for line in sys.stdin:
    since = int(line.split()[1])
    waiting = set(connections)
    times = []
    while waiting:
        found = selector.select(10)
        if not found:
            sys.exit(f"{len(waiting)} streams have no event")
        now = time.time_ns()
        for key, _ in found:
            if b"event: " in key.fileobj.recv(65536) and key.fileobj in waiting:
                waiting.remove(key.fileobj)
                times.append((now - since) // 1000)
    print(" ".join(map(str, times)), flush=True)
