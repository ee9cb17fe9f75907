"""Packed tables: members, padding, damage, and bombs."""

import gzip
import tracemalloc

import pytest

from localexpert.cli.console import UserError
from localexpert.cli.packed import MOST_BYTES, unpack
from localexpert.cli.read_file import read_table


def test_members_and_padding(rng):
    parts = [rng.bytes(n) for n in (0, 1, 70_000, 300_000)]
    data = b"".join(map(gzip.compress, parts))
    assert unpack("t.gz", data + bytes(999), MOST_BYTES) == b"".join(parts)


@pytest.mark.parametrize("cut", [1, 8, 1000])
def test_damage(cut, rng):
    data = gzip.compress(rng.bytes(200_000))
    for damaged in (data[:-cut], data + b"x" * cut, data[:10] + data[10 + cut :]):
        with pytest.raises(UserError, match=r"t\.gz is a damaged gzip file: "):
            unpack("t.gz", damaged, MOST_BYTES)


def test_a_bomb_is_refused_before_it_bursts():
    data = gzip.compress(bytes(2**30), 1)
    tracemalloc.start()
    with pytest.raises(UserError, match=r"more than 0\.03125 GiB; .* --max-unpacked"):
        unpack("t.gz", data, 2.0**25)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**27


def test_the_size_that_is_allowed(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a\n" + b"1\n" * 49))
    with pytest.raises(UserError, match="unpacks to more than"):
        read_table(str(path), most=99)
    assert len(read_table(str(path), most=100)) == 49
