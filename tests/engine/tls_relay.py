#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A TLS front for an engine's unix socket, as `dockerd --tlsverify` would be: client certificates are required.

tls_relay.py FOLDER SOCKET: makes a CA, a server's and a client's certificate in FOLDER (ca.pem, cert.pem, key.pem are
the client's set), listens on a free port of 127.0.0.1, prints it, and relays until its stdin ends.
"""
import os
import selectors
import socket
import ssl
import subprocess
import sys
import threading


def openssl(folder, *args):
    subprocess.run(["openssl", *args], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)


def certificate(folder, name, subject, *extensions):
    """NAME-key.pem and NAME.pem, signed by the CA."""
    openssl(folder, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}-key.pem",
            "-out", f"{name}.csr", "-subj", subject)
    with open(os.path.join(folder, f"{name}.ext"), "w", encoding="ascii") as out:
        out.write("\n".join(extensions))
    openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca-key.pem", "-CAcreateserial",
            "-days", "2", "-out", f"{name}.pem", "-extfile", f"{name}.ext")


def make_certificates(folder):
    openssl(folder, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-keyout", "ca-key.pem", "-out", "ca.pem", "-subj", "/CN=berth test CA")
    certificate(folder, "server", "/CN=engine", "subjectAltName=IP:127.0.0.1", "extendedKeyUsage=serverAuth")
    certificate(folder, "client", "/CN=berth", "extendedKeyUsage=clientAuth")
    os.replace(os.path.join(folder, "client.pem"), os.path.join(folder, "cert.pem"))
    os.replace(os.path.join(folder, "client-key.pem"), os.path.join(folder, "key.pem"))


def relay(raw, context, path):
    """Both ways until one side ends. Blocking sockets: a TLS socket may hold bytes that select does not see."""
    try:
        raw.settimeout(10)
        front = context.wrap_socket(raw, server_side=True)
    except (OSError, ssl.SSLError):
        raw.close()
        return
    front.settimeout(None)
    back = socket.socket(socket.AF_UNIX)
    try:
        back.connect(path)
        pump(front, back)
    except OSError:
        pass
    finally:
        front.close()
        back.close()


def pump(front, back):
    front.setblocking(False)
    back.setblocking(False)
    waiting = {front: b"", back: b""}  # bytes that are to be sent to the key
    other = {front: back, back: front}
    while True:
        with selectors.DefaultSelector() as chooser:
            for end in (front, back):
                events = (selectors.EVENT_READ if len(waiting[other[end]]) < 1 << 20 else 0) | (
                    selectors.EVENT_WRITE if waiting[end] else 0)
                if events:
                    chooser.register(end, events)
            chooser.select(timeout=0 if front.pending() else 30)
        for end in (front, back):
            try:
                if len(waiting[other[end]]) < 1 << 20:
                    data = end.recv(65536)
                    if not data:
                        return
                    waiting[other[end]] += data
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                pass
            try:
                if waiting[end]:
                    waiting[end] = waiting[end][end.send(waiting[end][:65536]):]
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                pass


def main():
    folder, path = sys.argv[1:3]
    make_certificates(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(folder, "server.pem"), os.path.join(folder, "server-key.pem"))
    context.load_verify_locations(os.path.join(folder, "ca.pem"))
    context.verify_mode = ssl.CERT_REQUIRED
    listener = socket.create_server(("127.0.0.1", 0))

    def accept():
        while True:
            raw, _ = listener.accept()
            threading.Thread(target=relay, args=(raw, context, path), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    sys.stdin.read()


main()
