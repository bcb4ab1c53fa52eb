"""A client of Prometheus' remote read without a library."""

import struct
import urllib.request

EQUAL, NOT_EQUAL, MATCH, NOT_MATCH = range(4)


def varint(number):
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out + bytes([number]))


def field(number, content):
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def take_varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, at


def fields(message):
    """The fields of a message as (number, content)."""
    at = 0
    while at < len(message):
        key, at = take_varint(message, at)
        kind = key & 7
        if kind == 0:
            content, at = take_varint(message, at)
        elif kind == 1:
            content, at = struct.unpack_from("<d", message, at)[0], at + 8
        else:
            length, at = take_varint(message, at)
            content, at = message[at : at + length], at + length
        yield key >> 3, content


def all_of(message, number):
    return [content for found, content in fields(message) if found == number]


def snappy(data):
    """A snappy block of literals, without compression."""
    out = bytearray(varint(len(data)))
    for start in range(0, len(data), 60):
        piece = data[start : start + 60]
        out += bytes([(len(piece) - 1) << 2]) + piece
    return bytes(out)


def unsnappy(data):
    length, at = take_varint(data, 0)
    out = bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        if tag & 3 == 0:
            size = tag >> 2
            if size >= 60:
                more = size - 59
                size = int.from_bytes(data[at : at + more], "little")
                at += more
            out += data[at : at + size + 1]
            at += size + 1
            continue
        if tag & 3 == 1:
            size, back = (tag >> 2 & 7) + 4, (tag >> 5) << 8 | data[at]
            at += 1
        else:
            more = 2 if tag & 3 == 2 else 4
            size, back = (tag >> 2) + 1, int.from_bytes(data[at : at + more], "little")
            at += more
        for _ in range(size):
            out.append(out[-back])
    assert len(out) == length
    return bytes(out)


def ask(address, start_ms, end_ms, matchers, types):
    """Headers and body of the response to one query."""
    query = field(1, start_ms) + field(2, end_ms)
    for kind, name, value in matchers:
        query += field(3, field(1, kind) + field(2, name.encode()) + field(3, value.encode()))
    message = field(1, query) + b"".join(field(2, kind) for kind in types)
    head = {
        "Content-Type": "application/x-protobuf",
        "Content-Encoding": "snappy",
        "X-Prometheus-Remote-Read-Version": "0.1.0",
    }
    request = urllib.request.Request(f"http://{address}/api/v1/read", snappy(message), head)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.headers, answer.read()


def labels_of(series):
    pairs = (dict(fields(label)) for label in all_of(series, 1))
    return tuple((pair[1].decode(), pair[2].decode()) for pair in pairs)


def samples(address, start_ms, end_ms, matchers):
    """`{labels: [(time, value), ...]}` from one message."""
    head, body = ask(address, start_ms, end_ms, matchers, [0])
    assert head["Content-Type"] == "application/x-protobuf" and head["Content-Encoding"] == "snappy"
    (result,) = all_of(unsnappy(body), 1)
    found = {}
    for series in all_of(result, 1):
        pairs = (dict(fields(sample)) for sample in all_of(series, 2))
        # Zero values may be omitted.
        found[labels_of(series)] = [(pair.get(2, 0), pair.get(1, 0.0)) for pair in pairs]
    assert list(found) == sorted(found)
    return found


def chunks(address, start_ms, end_ms, matchers):
    """`{labels: [(first, last, data), ...]}` from a stream of frames."""
    head, body = ask(address, start_ms, end_ms, matchers, [1])
    assert head["Content-Type"].startswith("application/x-streamed-protobuf")
    found, at = {}, 0
    while at < len(body):
        length, at = take_varint(body, at)
        crc, message = body[at : at + 4], body[at + 4 : at + 4 + length]
        assert int.from_bytes(crc, "big") == crc32c(message)
        at += 4 + length
        for series in all_of(message, 1):
            for chunk in map(dict, map(fields, all_of(series, 2))):
                assert chunk[3] == 1, "an XOR chunk"
                found.setdefault(labels_of(series), []).append((chunk[1], chunk[2], chunk[4]))
    assert list(found) == sorted(found)
    return found


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def table_entry(crc):
    for _ in range(8):
        crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc


TABLE = [table_entry(byte) for byte in range(256)]


def decode_chunk(data):
    """The samples of an XOR chunk."""
    bits = "".join(f"{byte:08b}" for byte in data[2:])
    at = 0

    def take(count):
        nonlocal at
        at += count
        return int(bits[at - count : at] or "0", 2)

    def number():
        value = shift = 0
        while True:
            byte = take(8)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def change():
        ones = 0
        while ones < 4 and take(1):
            ones += 1
        width = (0, 14, 17, 20, 64)[ones]
        value = take(width) if width else 0
        past = 1 << 63 if width == 64 else 1 << (width - 1) if width else 0
        is_negative = value >= past if width == 64 else value > past
        return value - (1 << width) if width and is_negative else value

    out, time, delta, value, leading, trailing = [], 0, 0, 0, 0, 0
    for index in range(int.from_bytes(data[:2], "big")):
        if index == 0:
            zigzag = number()
            time, value = zigzag >> 1 ^ -(zigzag & 1), take(64)
        else:
            delta = number() if index == 1 else delta + change()
            time += delta
            if take(1):
                if take(1):
                    leading, width = take(5), take(6) or 64
                    trailing = 64 - leading - width
                value ^= take(64 - leading - trailing) << trailing
        out.append((time, struct.unpack("<d", struct.pack("<Q", value))[0]))
    return out
