"""A RESP2/RESP3 client that preserves the types of replies.

A reply becomes a plain Python value that still tells its type: simple strings
are `Status`, errors `Error`, RESP3 doubles `Double` (the text), maps `Map`
and sets `Set`. Tests can therefore compare types and texts, not only values.
"""

import socket


class Status(str):
    pass


class Error(str):
    pass


class Double(str):
    pass


class Map(tuple):
    """Pairs in the order received."""


class Set(tuple):
    pass


class Push(tuple):
    pass


class Connection:
    def __init__(self, port, protocol=2):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.file = self.socket.makefile("rb")
        if protocol == 3:
            self("HELLO", "3")

    def __call__(self, *words):
        return self.pipeline([words])[0]

    def pipeline(self, commands):
        """Sends all commands, then reads a reply for each."""
        self.socket.sendall(b"".join(map(encode, commands)))
        return [self.read() for _ in commands]

    def read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return Status(text(rest))
        if kind == b"-":
            return Error(text(rest))
        if kind == b":":
            return int(rest)
        if kind == b",":
            return Double(text(rest))
        if kind == b"#":
            return rest == b"t"
        if kind == b"_":
            return None
        if kind in b"$=":
            return self.bulk(int(rest))
        count = int(rest)
        if count < 0:
            return None
        if kind == b"*":
            return [self.read() for _ in range(count)]
        if kind == b"~":
            return Set(self.read() for _ in range(count))
        if kind == b">":
            return Push(self.read() for _ in range(count))
        if kind == b"%":
            return Map((self.read(), self.read()) for _ in range(count))
        raise ValueError(f"unknown reply {line!r}")

    def bulk(self, length):
        if length < 0:
            return None
        return text(self.file.read(length + 2)[:-2])


def encode(words):
    out = [b"*%d\r\n" % len(words)]
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode("utf-8", "surrogateescape")
        out.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(out)


def text(raw):
    return raw.decode("utf-8", "surrogateescape")
