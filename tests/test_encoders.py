"""Encoders: sizes, shapes, what a head is, and that embedding leaves no trace."""

import math

import pytest
import torch
import torchvision
from torch import nn

from clutils import checkpoints, data, encoders, report, training


def pictures(n: int = 4, channels: int = 3, size: int = 32) -> torch.Tensor:
    return torch.rand(n, channels, size, size, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name, features, millions", [("conv16", 128, 0.10), ("conv32", 256, 0.39)])
@pytest.mark.parametrize("channels, size", [(1, 8), (3, 32), (3, 96), (1, 28), (3, 5)])
def test_the_small_nets_have_their_size_and_take_pictures_of_any(name, features, millions, channels, size):
    net = encoders.build(name, channels)
    assert net.features == features
    assert net(pictures(3, channels, size)).shape == (3, features)
    assert sum(p.numel() for p in net.parameters()) / 1e6 == pytest.approx(millions, abs=0.01)


@pytest.mark.parametrize("name, features", [("resnet18", 512), ("resnet50", 2048)])
def test_the_resnets_are_torchvisions_with_a_small_stem_and_no_classifier(name, features):
    net = encoders.build(name)
    original = torchvision.models.get_model(name, weights=None)
    assert net.features == features
    assert net.conv1.weight.shape == (64, 3, 3, 3) and net.conv1.stride == (1, 1)
    shapes = {k: v.shape for k, v in net.state_dict().items() if k != "conv1.weight"}
    assert shapes == {
        k: v.shape
        for k, v in original.state_dict().items()
        if k != "conv1.weight" and not k.startswith("fc.")
    }
    if name == "resnet18":
        assert net.layer1(net.maxpool(net.relu(net.conv1(pictures(1))))).shape[-2:] == (32, 32)
        assert net(pictures(2)).shape == (2, features)


def test_the_large_stem_is_torchvisions_own_and_takes_gray_pictures_too():
    assert encoders.build("resnet18", stem="7x7").conv1.weight.shape == (64, 3, 7, 7)
    gray = encoders.build("resnet18", channels=1, stem="7x7")
    assert gray.conv1.weight.shape == (64, 1, 7, 7)
    assert gray(pictures(2, 1, 64)).shape == (2, 512)


def test_the_small_net_is_convolution_pooling_normalisation_relu_four_times_and_an_average():
    torch.manual_seed(0)
    net = encoders.build("conv16").train()
    x = pictures(8)
    expected = x
    for layer in range(4):
        expected = nn.functional.conv2d(expected, net.convolutions[layer].weight, padding=1)
        if layer < 3:
            expected = expected.unfold(2, 2, 2).unfold(3, 2, 2).amax(dim=(-2, -1))
        mean, variance = expected.mean(dim=(0, 2, 3)), expected.var(dim=(0, 2, 3), unbiased=False)
        expected = (expected - mean[:, None, None]) / (variance + 1e-5).sqrt()[:, None, None]
        expected = expected.clamp(min=0)
    assert expected.shape[-2:] == (4, 4)
    torch.testing.assert_close(net(x), expected.flatten(2).mean(dim=2), rtol=1e-4, atol=1e-5)


def test_unknown_names_are_refused_with_the_list():
    with pytest.raises(
        ValueError, match="no encoder is called 'resnet19'; there are conv16, conv32, resnet18"
    ):
        encoders.build("resnet19")
    with pytest.raises(ValueError, match="stem is '5x5'"):
        encoders.build("resnet18", stem="5x5")
    with pytest.raises(ValueError, match="channels is 0"):
        encoders.build("conv16", channels=0)


def test_the_head_is_two_layers_with_a_normalised_relu_between():
    head = encoders.ProjectionHead(12, 10, 5).eval()
    x = torch.randn(6, 12, generator=torch.Generator().manual_seed(0))
    hidden = (head[0](x) / (1 + 1e-5) ** 0.5).clamp(min=0)
    torch.testing.assert_close(head(x), hidden @ head[3].weight.T + head[3].bias)
    assert head.features == 5


def test_embedding_changes_nothing_and_does_not_depend_on_the_batches():
    net = encoders.build("conv16").train()
    net.normalisations[1].eval()  # as where someone froze a layer
    before = {k: v.clone() for k, v in net.state_dict().items()}
    stream = torch.get_rng_state()
    images = (pictures(20) * 255).to(torch.uint8)
    z = encoders.embed(net, images)
    assert z.shape == (20, 128) and z.dtype == torch.float32 and not z.requires_grad
    assert net.training and net.normalisations[0].training and not net.normalisations[1].training
    assert all(torch.equal(v, before[k]) for k, v in net.state_dict().items())
    assert torch.equal(torch.get_rng_state(), stream)
    torch.testing.assert_close(encoders.embed(net, images, batch_size=7), z, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(encoders.embed(net, images.float() / 255), z)
    torch.testing.assert_close(net.eval()(images.float() / 255), z, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "images, options, message",
    [
        (torch.zeros(3, 32, 32, dtype=torch.uint8), {}, r"tensor is \(3, 32, 32\)"),
        ("scenes", {}, "tensor is str"),
        (torch.zeros(0, 3, 32, 32), {}, r"tensor is \(0, 3, 32, 32\)"),
        (torch.zeros(2, 3, 32, 32, dtype=torch.int64), {}, r"tensor is \(2, 3, 32, 32\) torch.int64"),
        *((torch.rand(4, 3, 8, 8), {"batch_size": n}, f"batch_size is {n}") for n in (0, -1, 1.5)),
        *(
            (torch.full((2, 3, 8, 8), value), {}, r"float images are in \[0, 1\], these are from")
            for value in (255.0, -1.0, math.nan)
        ),
    ],
)
def test_what_is_no_batch_of_pictures_is_not_embedded(images, options, message):
    with pytest.raises(ValueError, match=f"embed: .*{message}"):
        encoders.embed(encoders.build("conv16"), images, **options)


def test_dropout_leaves_out_its_share_and_keeps_the_mean():
    layer, x = encoders.Dropout(0.2), torch.ones(300, 300)
    layer.generator = torch.Generator().manual_seed(0)
    y = layer(x)
    assert (y == 0).double().mean().item() == pytest.approx(0.2, abs=0.01)
    assert y[y != 0].unique().tolist() == pytest.approx([1 / 0.8])
    assert torch.equal(layer.eval()(x), x)


def test_bfloat16_is_chosen_by_the_processors_own_flags(monkeypatch):
    def answer(text: str) -> bool:
        monkeypatch.setattr(encoders.Path, "read_text", lambda path: text)
        return encoders.computes_bfloat16.__wrapped__("cpu")

    assert answer("processor: 0\nflags\t\t: fpu avx512f avx512_bf16 amx_tile\n")
    assert answer("processor: 0\nFeatures\t: fp asimd bf16 i8mm\n")
    assert not answer("processor: 0\nflags\t\t: fpu avx512f avx512bw\n")
    assert not answer("")

    def absent(path):
        raise FileNotFoundError(path)

    monkeypatch.setattr(encoders.Path, "read_text", absent)
    assert not encoders.computes_bfloat16.__wrapped__("cpu")
    assert not encoders.computes_bfloat16.__wrapped__("mps")


class Own(nn.Module):
    """An encoder of one's own, which gives its features in some way."""

    def __init__(self, gives):
        super().__init__()
        self.net, self.gives, self.features = encoders.build("conv16", 1), gives, 128

    def forward(self, images):
        return self.gives(self.net(images))


OTHERS = {
    "a dict": lambda z: {"z": z},
    "a tuple": lambda z: (z, z),
    "a NoneType": lambda z: None,
    r"a tensor \(60,\)": lambda z: z[:, 0],
    "a ndarray": lambda z: z.detach().float().numpy(),
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_is_no_feature_is_named_wherever_an_encoder_is_taken(what):
    own, (gallery, test) = Own(OTHERS[what]), sets()
    for taken in (
        lambda: encoders.embed(own, test.images),
        lambda: report.check(own, (gallery, test), quick=True),
        lambda: training.Watcher((gallery, test)).look(own),
        lambda: training.train(data=gallery, encoder=own, batch_size=30, steps=1, progress=False),
    ):
        with pytest.raises(ValueError, match=f"the encoder, a Own, gives {what}, but must give a tensor"):
            taken()


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_an_encoder_in_half_or_double_precision_is_measured_as_it_is(kind, monkeypatch):
    monkeypatch.setattr(encoders, "computes_bfloat16", lambda device: True)  # as on newer processors
    own, (gallery, test) = Own(lambda z: z[:, :, None, None]), sets()
    features = encoders.embed(own, test.images)
    own.to(kind)
    found = encoders.embed(own, test.images)
    assert found.dtype == torch.float32 and found.shape == (60, 128)
    torch.testing.assert_close(found, features, rtol=0.05, atol=0.02)
    knn = report.check(own, (gallery, test), quick=True).examination.found.knn
    assert training.Watcher((gallery, test)).look(own).knn == pytest.approx(knn, abs=0.15)
    with pytest.raises(ValueError, match=f"the encoder's weights are {kind}, but must be float32"):
        training.Run(data=gallery, encoder=own, batch_size=30, steps=1)


def test_an_encoder_that_is_wrong_about_itself_or_a_head_that_does_not_fit_is_said():
    own, (gallery, test) = Own(lambda z: z), sets()
    with pytest.raises(ValueError, match="the head, a Linear, does not take the encoder's 128 features"):
        report.check(own, (gallery, test), quick=True, head=nn.Linear(5, 3))
    with pytest.raises(ValueError, match="head is 'fc', a name in a file, but a module is taken as it is"):
        report.check(own, (gallery, test), quick=True, head="fc")
    own.features = 64
    with pytest.raises(ValueError, match="the encoder gives 128 numbers, but its features are 64"):
        training.train(data=gallery, encoder=own, batch_size=30, steps=1, progress=False)
    del own.features
    with pytest.raises(ValueError, match=r"a Own, does not say how many .* encoder\.features = 512"):
        training.Run(data=gallery, encoder=own, batch_size=30, steps=1)


def sets():
    return data.load("digits", limit=120), data.load("digits", split="test", limit=60)


def test_an_encoder_without_values_is_refused_by_the_name_of_a_weight():
    empty = nn.Sequential(nn.Conv2d(1, 4, 3, device="meta"), nn.Flatten())
    images = torch.zeros(2, 1, 8, 8, dtype=torch.uint8)
    for use in (lambda: encoders.embed(empty, images), lambda: checkpoints.open(empty)):
        with pytest.raises(ValueError, match=r"weights without values \(0\.weight is on the meta device\)"):
            use()
