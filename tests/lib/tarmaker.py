"""Tar archives made block by block, so that they can be wrong in every way (POSIX.1-2001, pax(1); GNU tar's manual)."""
import gzip
import io
import tarfile

BLOCK = 512
END = bytes(2 * BLOCK)


def number(value, size):
    """Octal, or GNU's base 256 where that is too short or the value negative."""
    if 0 <= value < 8 ** (size - 1):
        return b"%0*o\0" % (size - 1, value)
    return bytes([0xff if value < 0 else 0x80]) + (value % 256 ** (size - 1)).to_bytes(size - 1, "big")


def header(name, kind=b"0", size=0, mode=0o644, mtime=0, target=b"", magic=b"ustar\00000", checksum=None, raw_size=None):
    h = bytearray(BLOCK)
    h[0:100] = name[:100].ljust(100, b"\0")
    h[100:108] = number(mode, 8)
    h[108:116] = h[116:124] = number(0, 8)
    h[124:136] = raw_size or number(size, 12)
    h[136:148] = number(mtime, 12)
    h[148:156] = b" " * 8
    h[156:157] = kind
    h[157:257] = target[:100].ljust(100, b"\0")
    h[257:257 + len(magic)] = magic
    h[148:156] = b"%06o\0 " % (sum(h) if checksum is None else checksum)
    return bytes(h)


def padded(data):
    return data + bytes(-len(data) % BLOCK)


def pax(**records):
    """A pax header; a value may be bytes."""
    body = b""
    for key, value in records.items():
        value = value if isinstance(value, bytes) else str(value).encode()
        rest = len(key) + len(value) + 3
        size = rest
        while size != rest + len(str(size)):
            size = rest + len(str(size))
        body += b"%d %s=%s\n" % (size, key.encode(), value)
    return header(b"pax", b"x", len(body)) + padded(body)


def file(name, data=b"x", **how):
    return header(name, b"0", len(data), **how) + padded(data)


def folder(name, mode=0o755, **how):
    return header(name, b"5", mode=mode, **how)


def symlink(name, target, **how):
    return header(name, b"2", target=target, mode=0o777, **how)


def hardlink(name, target, data=b""):
    return header(name, b"1", len(data), target=target) + padded(data)


def long(name, target=None):
    """A name of any length, by pax."""
    return pax(path=name) if target is None else pax(path=name, linkpath=target)


def archive(*parts):
    return b"".join(parts) + END


def by_tarfile(add, fmt=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=fmt) as tar:
        add(tar)
    return out.getvalue()


def gzipped(data):
    return gzip.compress(data, 1)
