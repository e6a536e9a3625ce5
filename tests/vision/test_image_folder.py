"""Image folders and archives: what is read, in which order, what is cached, and what is refused."""

from __future__ import annotations

import io
import tarfile
import zipfile

import numpy as np
import pytest
from PIL import Image

from fedpcd_cli.components import ParameterError
from fedpcd_cli.errors import DataError
from fedpcd_vision import image_folder
from fedpcd_vision.image_folder import ImageFolder


def write_folder(root, contents):
    for path, content in contents.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(content)
    return root


def write_tar(path, contents, mode="w"):
    with tarfile.open(path, mode) as archive:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def write_zip(path, contents):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return path


SOURCES = {
    "folder": lambda tmp, contents: write_folder(tmp / "pics", contents),
    "tar": lambda tmp, contents: write_tar(tmp / "pics.tar", contents),
    "tar.gz": lambda tmp, contents: write_tar(tmp / "pics.tar.gz", contents, "w:gz"),
    "tar.xz": lambda tmp, contents: write_tar(tmp / "pics.tar.xz", contents, "w:xz"),
    "tar.bz2": lambda tmp, contents: write_tar(tmp / "pics.tar.bz2", contents, "w:bz2"),
    "zip": lambda tmp, contents: write_zip(tmp / "pics.zip", contents),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("prefix", ["", "pics-1.0/", "./"])
def test_every_source_gives_the_same_dataset(context, tmp_path, files, source, prefix):
    contents, pixels = files
    # Reversed: the order in the source must not matter.
    root = SOURCES[source](tmp_path, {prefix + path: contents[path] for path in reversed(contents)})
    dataset = ImageFolder().load(context(root=root))
    order = [f"{split}/{label}/{i}.png" for split, n in (("train", 3), ("test", 1)) for label in ("cat", "dog")
             for i in range(n)]  # fmt: skip
    assert dataset.inputs.shape == (8, 3, 4, 6)
    for row, path in zip(dataset.inputs, order, strict=True):
        assert np.array_equal(row, pixels[path].transpose(2, 0, 1))
    assert dataset.targets.tolist() == [0, 0, 0, 1, 1, 1, 0, 1]
    assert (dataset.n_train, dataset.class_names, dataset.notes) == (6, ("cat", "dog"), ())
    assert dataset.inputs.flags.writeable


def test_many_files_decode_in_order(context, tmp_path, encode, monkeypatch):
    """More than one chunk, more than one thread."""
    from fedpcd_vision import decode

    monkeypatch.setattr(decode, "_CHUNK", 7)
    monkeypatch.setattr(decode, "_TINY_FILE", 0)
    contents = {f"train/a/{i:03d}.png": encode(np.full((2, 2), i)) for i in range(100)}
    contents["test/a/0.png"] = encode(np.zeros((2, 2)))
    dataset = ImageFolder().load(context(root=write_tar(tmp_path / "x.tar", contents)))
    assert dataset.inputs[:100, 0, 0, 0].tolist() == list(range(100))


# --- cache ---


def test_second_load_reads_the_cache(context, tmp_path, files, monkeypatch):
    root = write_zip(tmp_path / "pics.zip", files[0])
    first = ImageFolder().load(context(root=root))

    def fail(*_args, **_settings):
        raise AssertionError("decoded again")

    monkeypatch.setattr(image_folder, "decode_all", fail)
    second = ImageFolder().load(context(root=root))
    assert second.fingerprint == first.fingerprint
    assert (second.class_names, second.n_train, second.notes) == (first.class_names, 6, ())
    moved = root.rename(tmp_path / "elsewhere.zip")  # the content counts, not the name
    assert ImageFolder().load(context(root=moved)).fingerprint == first.fingerprint


@pytest.mark.parametrize("source", ["folder", "tar"])
def test_changed_content_or_settings_are_decoded_again(context, tmp_path, files, encode, source):
    contents, _ = files
    first = ImageFolder().load(context(root=SOURCES[source](tmp_path, contents)))
    contents["train/cat/0.png"] = encode(np.zeros((4, 6, 3)))
    root = SOURCES[source](tmp_path, contents)
    second = ImageFolder().load(context(root=root))
    third = ImageFolder(grayscale=True).load(context(root=root))
    fourth = ImageFolder(image_size=2).load(context(root=root))
    assert len({d.fingerprint for d in (first, second, third, fourth)}) == 4
    assert len(list((tmp_path / "cache" / "image-folder").iterdir())) == 4


def test_damaged_cache_is_rebuilt(context, tmp_path, files):
    root = write_folder(tmp_path / "pics", files[0])
    first = ImageFolder().load(context(root=root))
    (cached,) = (tmp_path / "cache" / "image-folder").iterdir()
    content = bytearray(cached.read_bytes())
    content[content.index(first.inputs[:1].tobytes())] ^= 1
    cached.write_bytes(bytes(content))
    said = []
    assert ImageFolder().load(context(root=root, progress=said.append)).fingerprint == first.fingerprint
    assert any("is damaged; building it again" in line for line in said)


# --- decoding ---


def test_jpeg_is_noted(context, tmp_path, encode):
    contents = {f"{split}/a/0.jpg": encode(np.full((8, 8), 128), "JPEG") for split in ("train", "test")}
    dataset = ImageFolder().load(context(root=write_folder(tmp_path / "p", contents)))
    assert dataset.inputs.shape == (2, 1, 8, 8)
    assert dataset.notes == (
        "decoded from JPEG (lossy): figures are not comparable with those on the original files",
    )


@pytest.mark.parametrize(
    ("mode", "grayscale", "channels"),
    [
        ("L", None, 1),
        ("1", None, 1),
        ("LA", None, 1),
        ("RGB", None, 3),
        ("RGBA", None, 3),
        ("P", None, 3),
        ("RGB", True, 1),
        ("L", False, 3),
    ],
)
def test_channels(context, tmp_path, encode, mode, grayscale, channels):
    pixels = np.zeros((4, 4, 3), np.uint8)
    pixels[0] = 255
    contents = {f"{split}/a/0.png": encode(pixels, mode=mode) for split in ("train", "test")}
    dataset = ImageFolder(grayscale=grayscale).load(context(root=write_folder(tmp_path / "p", contents)))
    assert dataset.inputs.shape == (2, channels, 4, 4)
    assert np.array_equal(dataset.inputs[0], np.broadcast_to(pixels[:, :, 0], (channels, 4, 4)))


def test_transparent_palettes_are_read_without_a_warning(context, tmp_path):
    buffer = io.BytesIO()
    Image.new("P", (4, 4), 1).save(buffer, "PNG", transparency=bytes([0, 128]))
    contents = {f"{split}/a/0.png": buffer.getvalue() for split in ("train", "test")}
    assert ImageFolder().load(context(root=write_folder(tmp_path / "p", contents))).sample_shape == (3, 4, 4)


def test_resizing(context, tmp_path, encode):
    contents = {
        "train/a/0.png": encode(np.full((8, 8), 40)),
        "train/a/1.png": encode(np.full((4, 4), 80)),
        "test/a/0.png": encode(np.full((2, 6), 120)),
    }
    dataset = ImageFolder(image_size=4).load(context(root=write_folder(tmp_path / "p", contents)))
    assert dataset.inputs[:, 0].tolist() == [np.full((4, 4), v).tolist() for v in (40, 80, 120)]
    assert dataset.notes == ("images resized to 4 x 4",)


def test_odd_size_is_named_with_the_remedy(context, tmp_path, files, encode):
    contents = files[0] | {"train/dog/1.png": encode(np.zeros((5, 6, 3)))}
    root = write_folder(tmp_path / "p", contents)
    with pytest.raises(DataError) as caught:
        ImageFolder().load(context(root=root))
    assert str(caught.value) == (
        f"{root / 'train/dog/1.png'}: all images must share one shape, [C, H, W] = [3, 4, 6] in most files; "
        "found [3, 5, 6].\n  Set image_size to resize all of them to one height and width."
    )


def test_odd_channels_are_named_with_the_remedy(context, tmp_path, files, encode):
    contents = files[0] | {"test/cat/0.png": encode(np.zeros((4, 6)))}
    with pytest.raises(DataError) as caught:
        ImageFolder().load(context(root=write_folder(tmp_path / "p", contents)))
    assert "test/cat/0.png: all images must share one shape" in str(caught.value)
    assert "Set grayscale to true (one channel) or false (three channels)." in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no image", "must be an image; it can't be decoded (8 bytes)."),
        (b"", "must be an image; it can't be decoded (0 bytes)."),
        ("cut", "the image can't be decoded: "),
    ],
)
@pytest.mark.parametrize("source", ["folder", "zip"])
def test_broken_images_are_named(context, tmp_path, files, content, message, source):
    contents = dict(files[0])
    contents["train/dog/2.png"] = contents["train/dog/2.png"][:-60] if content == "cut" else content
    root = SOURCES[source](tmp_path, contents)
    with pytest.raises(DataError) as caught:
        ImageFolder().load(context(root=root))
    assert f"{root / 'train/dog/2.png'}: {message}" in str(caught.value)
    assert "Remove the file" in str(caught.value)
    assert not list((tmp_path / "cache").rglob("*.npz"))


def test_sixteen_bits_are_refused(context, tmp_path, files):
    buffer = io.BytesIO()
    Image.fromarray(np.zeros((4, 6), np.uint16)).save(buffer, "PNG")
    contents = files[0] | {"train/cat/0.png": buffer.getvalue()}
    with pytest.raises(
        DataError, match=r"train/cat/0\.png: must have 8 bits per channel; found mode I;16 \(PNG\)"
    ):
        ImageFolder().load(context(root=write_folder(tmp_path / "p", contents)))


# --- layout ---


def test_files_outside_are_noted_and_junk_is_not(context, tmp_path, files):
    extra = {"README": b"", "val/cat/0.png": b"", "__MACOSX/train/cat/x": b"", "train/cat/.DS_Store": b""}
    dataset = ImageFolder().load(context(root=write_zip(tmp_path / "p.zip", files[0] | extra)))
    assert dataset.notes == ("2 files outside train/ and test/ were ignored (first: README)",)
    assert len(dataset.targets) == 8


@pytest.mark.parametrize(
    ("extra", "left_out", "message"),
    [
        ({"train/x.png": b""}, (), "images must lie in train/<class>/; found train/x.png."),
        ({"train/cat/more/x.png": b""}, (), "images must lie in train/<class>/; found train/cat/more/x.png."),
        ({"copy/train/cat/0.png": b""}, (), "must have one train and one test folder; found "),
        ({}, ("test/",), "must hold images in train/<class>/ and test/<class>/; found none in test/<class>/."),
        ({}, ("train/", "test/"), "found none in train/<class>/."),
        ({}, ("test/dog",), "train and test must have the same class folders; found dog only in train."),
        ({}, ("train/cat",), "train and test must have the same class folders; found cat only in test."),
    ],
)
@pytest.mark.parametrize("source", ["folder", "tar"])
def test_wrong_layouts(context, tmp_path, files, extra, left_out, message, source):
    contents = {p: c for p, c in files[0].items() if not p.startswith(left_out)} | extra
    contents["README"] = b""
    with pytest.raises(DataError) as caught:
        ImageFolder().load(context(root=SOURCES[source](tmp_path, contents)))
    assert message in str(caught.value)


def test_a_file_that_is_there_twice(context, tmp_path, files):
    root = write_tar(tmp_path / "p.tar", files[0])
    with tarfile.open(root, "a") as archive:
        archive.addfile(tarfile.TarInfo("./train/cat/0.png"))
    with pytest.raises(DataError, match=r"p\.tar/train/cat/0\.png: each file must be there once; found it twice"):
        ImageFolder().load(context(root=root))


# --- archives ---


@pytest.mark.parametrize(
    "name", ["../train/cat/9.png", "/train/cat/9.png", "train/../../x.png", "train\\cat\\9.png"]
)
@pytest.mark.parametrize("source", ["tar", "zip"])
def test_paths_that_leave_the_archive_are_refused(context, tmp_path, files, name, source):
    root = SOURCES[source](tmp_path, files[0] | {name: b""})
    with pytest.raises(DataError) as caught:
        ImageFolder().load(context(root=root))
    assert f"{root}: paths must stay inside the archive; found '" in str(caught.value)
    assert "unpack it yourself" in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (tarfile.SYMTYPE, "a link"),
        (tarfile.LNKTYPE, "a link"),
        (tarfile.CHRTYPE, "a device or other special file"),
        (tarfile.FIFOTYPE, "a device or other special file"),
    ],
)
def test_links_and_devices_are_refused(context, tmp_path, files, kind, what):
    root = write_tar(tmp_path / "p.tar", files[0])
    member = tarfile.TarInfo("train/cat/link.png")
    member.type, member.linkname = kind, "/etc/passwd"
    with tarfile.open(root, "a") as archive:
        archive.addfile(member)
    with pytest.raises(DataError) as caught:
        ImageFolder().load(context(root=root))
    assert f"must hold only files and folders; 'train/cat/link.png' is {what}." in str(caught.value)


def test_links_in_zip_archives_are_refused(context, tmp_path, files):
    root = write_zip(tmp_path / "p.zip", files[0])
    member = zipfile.ZipInfo("train/cat/link.png")
    member.external_attr = 0o120777 << 16
    with zipfile.ZipFile(root, "a") as archive:
        archive.writestr(member, "/etc/passwd")
    with pytest.raises(DataError, match=r"'train/cat/link\.png' is a link"):
        ImageFolder().load(context(root=root))


@pytest.mark.parametrize("source", ["tar.gz", "tar.xz", "tar.bz2", "zip"])
def test_damaged_archives_are_named(context, tmp_path, files, source):
    root = SOURCES[source](tmp_path, files[0])
    content = bytearray(root.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 40] = bytes(40)
    root.write_bytes(bytes(content))
    with pytest.raises(DataError) as caught:
        ImageFolder().load(context(root=root))
    assert str(root) in str(caught.value)


def test_cut_tar_is_named(context, tmp_path, files):
    root = write_tar(tmp_path / "p.tar", files[0])
    root.write_bytes(root.read_bytes()[:1600])
    with pytest.raises(DataError, match=r"p\.tar: the archive is damaged"):
        ImageFolder().load(context(root=root))


def test_no_source_and_wrong_source(context, tmp_path):
    with pytest.raises(
        DataError, match=r"data\.root must be a folder or an archive .* 'image-folder'; .*no is missing"
    ):
        ImageFolder().load(context(root=tmp_path / "no"))
    (tmp_path / "x.txt").write_text("text")
    with pytest.raises(DataError, match=r"x\.txt: must be a folder or a tar \(\.gz, \.bz2, \.xz\) or zip archive"):
        ImageFolder().load(context(root=tmp_path / "x.txt"))
    with pytest.raises(DataError, match=r"data\.root must be a folder or an archive .*; found null"):
        ImageFolder().load(context())


def test_folder_links_and_cycles(context, tmp_path, files):
    """A user's own links are followed; a link to a parent must not hang."""
    root = write_folder(tmp_path / "real", files[0])
    linked = tmp_path / "linked"
    linked.mkdir()
    try:
        for split in ("train", "test"):
            (linked / split).symlink_to(root / split)
    except OSError:
        pytest.skip("no links on this file system")
    assert len(ImageFolder().load(context(root=linked)).targets) == 8
    (linked / "loop").symlink_to(linked)
    with pytest.raises(DataError, match="must have one train and one test folder"):
        ImageFolder().load(context(root=linked))


def test_parameters_are_checked():
    with pytest.raises(ParameterError, match=r"image-folder\.image_size must be at least 1; found 0"):
        ImageFolder.from_params({"image_size": 0})
    with pytest.raises(ParameterError, match=r"image-folder\.grayscale .*; found 'yes'"):
        ImageFolder.from_params({"grayscale": "yes"})
