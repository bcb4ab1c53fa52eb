"""When a group of rules is evaluated: the hash of its file and name, as in Prometheus."""

import struct

MASK = (1 << 64) - 1
P1, P2, P3, P4, P5 = (
    11400714785074694791,
    14029467366897019727,
    1609587929392839161,
    9650029242287828579,
    2870177450012600261,
)


def rotated(number, by):
    return (number << by | number >> 64 - by) & MASK


def mixed(state, lane):
    return rotated((state + lane * P2) & MASK, 31) * P1 & MASK


def xxh64(data):
    """Without a seed."""
    at, length = 0, len(data)
    if length >= 32:
        lanes = [(P1 + P2) & MASK, P2, 0, -P1 & MASK]
        while at + 32 <= length:
            lanes = [mixed(lane, part) for lane, part in zip(lanes, struct.unpack_from("<4Q", data, at))]
            at += 32
        found = sum(rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18))) & MASK
        for lane in lanes:
            found = ((found ^ mixed(0, lane)) * P1 + P4) & MASK
    else:
        found = P5
    found = (found + length) & MASK
    while at + 8 <= length:
        found = (rotated(found ^ mixed(0, struct.unpack_from("<Q", data, at)[0]), 27) * P1 + P4) & MASK
        at += 8
    if at + 4 <= length:
        found = (rotated(found ^ struct.unpack_from("<I", data, at)[0] * P1 & MASK, 23) * P2 + P3) & MASK
        at += 4
    for byte in data[at:]:
        found = rotated(found ^ byte * P5 & MASK, 11) * P1 & MASK
    found = (found ^ found >> 33) * P2 & MASK
    found = (found ^ found >> 29) * P3 & MASK
    return found ^ found >> 32


def part(text):
    data = text.encode()
    return (bytes([len(data)]) if len(data) < 255 else b"\xff" + len(data).to_bytes(3, "little")) + data


def offset_ms(file, group, interval_ms):
    """Milliseconds after a multiple of the interval."""
    found = xxh64(b"".join(map(part, ["file", file, "name", group])))
    return found % (interval_ms * 1_000_000) // 1_000_000


if __name__ == "__main__":
    # As in the server's own test.
    assert xxh64(b"".join(map(part, ["file", "rules.yml", "name", "machines"]))) == 17_997_303_048_144_789_722
