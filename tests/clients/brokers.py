"""What no user should do to the topic of a log: by requests to the brokers, and in their files.

Requests are the oldest versions that Kafka 4 takes: they have no flexible fields.
"""

import gzip
import socket
import struct
import time
from pathlib import Path

PRODUCE, DELETE_TOPICS, DELETE_RECORDS, ALTER_CONFIGS = (0, 3), (20, 1), (21, 0), (44, 0)
# Brokers that do not lead say so; one that was chosen anew leads soon.
PATIENCE_S = 60
TIMEOUT_MS = 10_000


def text(value):
    return struct.pack(">h", len(value)) + value.encode()


def ask(port, request, body):
    """The answer of the broker on `port`, behind its header."""
    frame = struct.pack(">hhih", *request, 1, -1) + body
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as stream:
        stream.sendall(struct.pack(">i", len(frame)) + frame)
        with stream.makefile("rb") as answer:
            (length,) = struct.unpack(">i", answer.read(4))
            return answer.read(length)[4:]


def ask_all(ports, request, body, error_at):
    """Asks one broker after the other, until one answers 0 at this place."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        for port in ports:
            answer = ask(port, request, body)
            (error,) = struct.unpack_from(">h", answer, error_at)
            if error == 0:
                return
        assert time.monotonic() < deadline, f"request {request}: error {error}"
        time.sleep(0.2)


def of_partition(topic, body):
    """One topic, of which partition 0."""
    return struct.pack(">i", 1) + text(topic) + struct.pack(">ii", 1, 0) + body


def delete_topic(ports, topic):
    body = struct.pack(">i", 1) + text(topic) + struct.pack(">i", TIMEOUT_MS)
    ask_all(ports, DELETE_TOPICS, body, 4 + 4 + 2 + len(topic))


def set_retention(ports, topic, retention_ms):
    """Of the records of a topic."""
    setting = text("retention.ms") + b"\0" + text(str(retention_ms))
    resource = b"\2" + text(topic) + struct.pack(">i", 1) + setting
    # It is not only to be validated.
    ask_all(ports, ALTER_CONFIGS, struct.pack(">i", 1) + resource + b"\0", 4 + 4)


def delete_records(ports, topic):
    """All that are there."""
    body = of_partition(topic, struct.pack(">q", -1)) + struct.pack(">i", TIMEOUT_MS)
    ask_all(ports, DELETE_RECORDS, body, 4 + 4 + 2 + len(topic) + 4 + 4 + 8)


def append_bomb(ports, topic, megabytes):
    """A batch of one record of zeros, by gzip: a thousandth of its length."""
    batch = bomb(megabytes << 20)
    body = text_or_none() + struct.pack(">hi", -1, TIMEOUT_MS)
    body += of_partition(topic, struct.pack(">i", len(batch)) + batch)
    ask_all(ports, PRODUCE, body, 4 + 2 + len(topic) + 4 + 4)


def text_or_none():
    return struct.pack(">h", -1)


def varint(number):
    """Zigzag, as records have lengths."""
    number, bytes_ = (number << 1) ^ (number >> 63), bytearray()
    while number > 0x7F:
        bytes_.append(number & 0x7F | 0x80)
        number >>= 7
    bytes_.append(number)
    return bytes(bytes_)


def bomb(length):
    # Attributes, times, no key, the value, no headers.
    record = b"\0\0\0" + varint(-1) + varint(length) + bytes(length) + varint(0)
    records = gzip.compress(varint(len(record)) + record)
    now_ms = int(time.time() * 1000)
    # gzip; the last offset; times; no producer; one record.
    summed = struct.pack(">hiqqqhii", 1, 0, now_ms, now_ms, -1, -1, -1, 1) + records
    rest = struct.pack(">ibI", -1, 2, crc32c(summed)) + summed
    return struct.pack(">qi", 0, len(rest)) + rest


def crc32c(bytes_):
    table = []
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (0x82F63B78 if number & 1 else 0)
        table.append(number)
    sum_ = 0xFFFFFFFF
    for byte in bytes_:
        sum_ = table[(sum_ ^ byte) & 0xFF] ^ sum_ >> 8
    return sum_ ^ 0xFFFFFFFF


def batches(segment):
    """The offset behind each batch of a segment, and where it ends in the file."""
    bytes_, at, found = segment.read_bytes(), 0, []
    while at + 61 <= len(bytes_):
        base, length = struct.unpack_from(">qi", bytes_, at)
        (last,) = struct.unpack_from(">i", bytes_, at + 23)
        at += 12 + length
        if length <= 0 or at > len(bytes_):
            break
        found.append((base + last + 1, at))
    return found


def lose_tail(directory, topic, records):
    """Cuts so many records off the end of all replicas, which the brokers, not running, have in
    `directory`."""
    segments = [newest_segment(place) for place in Path(directory).glob(f"*/data/{topic}-0")]
    ends = [batches(segment) for segment in segments]
    end = min(found[-1][0] for found in ends) - records
    for segment, found in zip(segments, ends):
        kept = [at for behind, at in found if behind <= end]
        assert kept, f"{segment} begins behind {end}"
        with open(segment, "r+b") as file:
            file.truncate(kept[-1])


def newest_segment(place):
    return max(path for path in place.glob("*.log") if batches(path))
