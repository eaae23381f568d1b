"""Kubernetes' protobuf, as far as tests need to make and to change it (protobuf.dev, "Encoding")."""

PROTOBUF = "application/vnd.kubernetes.protobuf"
MAGIC = b"k8s\0"


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def coded(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def with_text(data, path, text):
    """The protobuf message with another value in the field at `path`, a list of field numbers."""
    out, at = b"", 0
    while at < len(data):
        begin = at
        key, at = varint(data, at)
        if key & 7 == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            if key >> 3 == path[0]:
                value = with_text(value, path[1:], text) if len(path) > 1 else text.encode()
                out += coded(key) + coded(len(value)) + value
                continue
        else:
            assert key & 7 == 0, key
            _, at = varint(data, at)
        out += data[begin:at]
    return out


def message(*fields):
    """A protobuf message of (number, value): text, bytes or a number."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += coded(number << 3) + coded(value)
        else:
            value = value.encode() if isinstance(value, str) else value
            out += coded(number << 3 | 2) + coded(len(value)) + value
    return out


def fields(data):
    """Pairs of number and value: bytes, or a number."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            at, value = at + value, data[at:at + value]
        yield key >> 3, value


def text_at(data, path):
    for number, value in fields(data):
        if number == path[0]:
            return text_at(value, path[1:]) if len(path) > 1 else value.decode()
    raise AssertionError(f"no field {path}")
