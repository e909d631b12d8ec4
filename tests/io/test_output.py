"""Files that are written: where, with which mode, and what a killed writer leaves behind."""

import os

import numpy as np
import pytest

import bayesgen as bg
from bayesgen.io.storage import check_target, replacing

CLF = bg.GaussianNB().fit(np.arange(12.0).reshape(6, 2), [0, 1] * 3)


def put(path, text):
    with replacing(path) as temporary:
        temporary.write_text(text)


@pytest.mark.parametrize("mode", [0o600, 0o664])
def test_a_replaced_file_keeps_its_mode(mode, tmp_path):
    path = tmp_path / "model.nc"
    CLF.save(path)
    path.chmod(mode)
    CLF.save(path)
    assert path.stat().st_mode & 0o7777 == mode


def test_a_private_file_is_private_while_it_is_written(tmp_path):
    path = tmp_path / "private"
    path.write_text("old")
    path.chmod(0o600)
    with replacing(path) as temporary:
        assert temporary.stat().st_mode & 0o777 == 0o600


def test_a_read_only_file_is_refused(tmp_path):
    path = tmp_path / "model.nc"
    path.write_text("old")
    path.chmod(0o444)
    with pytest.raises(PermissionError, match=r"model\.nc: it is read-only"):
        CLF.save(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_every_name_that_the_file_system_has(tmp_path):
    path = tmp_path / ("n" * 255)
    put(path, "new")
    assert path.read_text() == "new"
    with pytest.raises(OSError, match="File name too long"):
        check_target(tmp_path / ("n" * 256))


def test_links(tmp_path):
    to, link = (tmp_path / name for name in ("to", "link"))
    link.symlink_to(to)
    put(link, "new")
    assert link.is_symlink()
    assert to.read_text() == "new"


def test_hidden_files_of_the_user_stay(tmp_path):
    kept = [tmp_path / name for name in (".c.nc.20240131", ".c.nc.deadbeef", ".bayesgen-notes.tmp")]
    for path in kept:
        path.write_text("kept")
    chunks = [(np.arange(12.0).reshape(6, 2), [0, 1] * 3)] * 3
    for _ in range(2):
        bg.fit_stream(bg.GaussianNB(), chunks, checkpoint=tmp_path / "c.nc", every=1)
    assert sorted(tmp_path.iterdir()) == sorted([*kept, tmp_path / "c.nc"])


def test_writers_of_one_file_leave_each_other_alone(tmp_path):
    path = tmp_path / "out"
    with replacing(path) as first:
        put(path, "second")
        first.write_text("first")
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_can_be_loaded_while_its_writer_ends(tmp_path, monkeypatch):
    """HDF5 asks for a shared lock of what it reads; the writer holds none."""
    path, replace = tmp_path / "model.nc", os.replace

    def replace_and_load(source, target):
        replace(source, target)
        bg.load(target)

    monkeypatch.setattr(os, "replace", replace_and_load)
    CLF.save(path)
    assert path.exists()
