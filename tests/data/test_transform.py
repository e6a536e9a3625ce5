"""From raw batches to model inputs, against torchvision and by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torchvision.transforms import functional as tv

from fedpcd_cli.data.assemble import assemble_dataset
from fedpcd_cli.data.transform import Transform
from fedpcd_cli.errors import DataError

RAW = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (6, 3, 5, 7), dtype=np.uint8))
IMAGES = assemble_dataset(name="pics", inputs=RAW.numpy(), targets=np.zeros(6, int), n_train=6, class_names=["a"])
FEATURES = assemble_dataset(
    name="rows", inputs=np.ones((4, 2), np.float32), targets=np.zeros(4, int), n_train=4, class_names=["a"]
)
MEAN, STD = (0.5, 0.25, 0.125), (0.5, 0.3, 0.2)


def normalize(mean=MEAN, std=STD):
    return SimpleNamespace(mean=mean, std=std)


def augment(crop_padding=0, flip=False):
    return SimpleNamespace(crop_padding=crop_padding, flip=flip)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_plain_images_are_scaled_to_one():
    inputs = Transform.build(IMAGES, None, None)(RAW)
    assert torch.equal(inputs, RAW.float() / 255)
    assert inputs.dtype == torch.float32


def test_normalization_equals_torchvision():
    inputs = Transform.build(IMAGES, normalize(), None)(RAW)
    assert torch.equal(inputs, tv.normalize(RAW.float() / 255, MEAN, STD))


def test_dtype_is_followed():
    inputs = Transform.build(IMAGES, normalize(), None, dtype=torch.float64)(RAW)
    assert inputs.dtype == torch.float64
    assert torch.allclose(inputs, tv.normalize(RAW.double() / 255, MEAN, STD), atol=1e-15)


def test_raw_data_is_left_unchanged():
    features = torch.tensor([[1.0, 2.0]])
    Transform.build(FEATURES, normalize((1.0, 2.0), (2.0, 4.0)), None)(features)
    before = RAW.clone()
    Transform.build(IMAGES, normalize(), augment(1, True))(RAW, generator=generator(), training=True)
    assert features.tolist() == [[1.0, 2.0]]
    assert torch.equal(RAW, before)


def test_features_pass_through_or_are_normalized():
    features = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    assert torch.equal(Transform.build(FEATURES, None, None)(features), features)
    inputs = Transform.build(FEATURES, normalize((1.0, 2.0), (2.0, 4.0)), None)(features)
    assert inputs.tolist() == [[0.0, 0.0], [1.0, 1.0]]


def test_flip_mirrors_half_of_the_images():
    raw = RAW[:1].expand(400, -1, -1, -1)
    out = Transform.build(IMAGES, None, augment(flip=True))(raw, generator=generator(), training=True)
    plain = raw[0].float() / 255
    same = (out == plain).flatten(1).all(1)
    mirrored = (out == plain.flip(-1)).flatten(1).all(1)
    assert (same ^ mirrored).all()
    assert 150 < int(mirrored.sum()) < 250


def test_crops_are_windows_of_the_padded_image():
    """Every window of the image padded by 2 occurs, and nothing else; padding is black before normalization."""
    raw = RAW[:1].expand(1000, -1, -1, -1)
    transform = Transform.build(IMAGES, normalize(), augment(crop_padding=2))
    out = transform(raw, generator=generator(), training=True)
    padded = tv.normalize(tv.pad(RAW[0], [2, 2]).float() / 255, MEAN, STD)
    windows = torch.stack([padded[:, y : y + 5, x : x + 7] for y in range(5) for x in range(5)]).flatten(1)
    hits = (out.flatten(1)[:, None] == windows[None]).all(2)
    assert (hits.sum(1) == 1).all()
    assert (hits.sum(0) > 15).all()  # 40 expected


def test_flip_and_crop_together_keep_the_shape_and_layout():
    out = Transform.build(IMAGES, None, augment(2, True))(RAW, generator=generator(), training=True)
    assert out.shape == RAW.shape
    assert out.is_contiguous()


def test_evaluation_is_never_augmented():
    transform = Transform.build(IMAGES, None, augment(2, True))
    assert torch.equal(transform(RAW), RAW.float() / 255)


def test_augmentation_depends_on_its_generator_only():
    transform = Transform.build(IMAGES, None, augment(2, True))
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first, second, other = (transform(RAW, generator=generator(s), training=True) for s in (0, 0, 1))
    assert torch.equal(first, second)
    assert not torch.equal(first, other)
    assert torch.equal(state, torch.get_rng_state())


def test_augmentation_needs_a_generator():
    with pytest.raises(ValueError, match="augmentation needs a generator"):
        Transform.build(IMAGES, None, augment(2))(RAW, training=True)


@pytest.mark.parametrize(
    ("dataset", "sections", "message"),
    [
        (
            IMAGES,
            (normalize(mean=(0.5,)), None),
            "data.normalize.mean must have 3 values, one for each of the channels of dataset 'pics'; found 1.",
        ),
        (IMAGES, (normalize(std=(1.0, 1.0)), None), "data.normalize.std must have 3 values"),
        (FEATURES, (normalize(), None), "data.normalize.mean must have 2 values, one for each of the features"),
        (IMAGES, (normalize(std=(1.0, 0.0, 1.0)), None), "data.normalize.std must be greater than 0; found 0.0."),
        (
            FEATURES,
            (None, augment(flip=True)),
            "data.augment must be null for feature data; dataset 'rows' holds no",
        ),
        (FEATURES, (None, augment(4)), "data.augment must be null for feature data"),
    ],
)
def test_sections_that_do_not_fit(dataset, sections, message):
    with pytest.raises(DataError) as caught:
        Transform.build(dataset, *sections)
    assert message in str(caught.value)
