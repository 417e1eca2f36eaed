"""What else files hold beside plain weights: averages, masks, chunks of blocks, the name of the network."""

import copy
import json
import re
import resource
import sys

import pytest
import safetensors.torch
import torch
import torchvision
from torch import nn
from torch.nn.utils import prune

from clutils import checkpoints
from tests.checkpoints.files import installed_timm, prefixed, reopened, resnet18, same, seeded

# ---- moving averages ---------------------------------------------------------------------------------------


PLAIN = copy.deepcopy(resnet18())
PLAIN.fc = nn.Identity()
LAST = PLAIN.state_dict()
MEAN = {name: value * 1.1 if value.is_floating_point() else value for name, value in LAST.items()}
HEAD = {"projector.0.weight": torch.ones(8, 512), "projector.0.bias": torch.zeros(8)}
LIGHTNING = {"pytorch-lightning_version": "2.4"}
COUNT = {"ema_model.n_averaged": torch.tensor(3)}
BOTH = {  # how a file keeps both -> the file, and where the average is
    "timm": ({"state_dict": LAST, "state_dict_ema": MEAN}, "state_dict_ema"),
    "ConvNeXt": ({"model": LAST, "model_ema": MEAN}, "model_ema"),
    "deeper": ({"model": LAST, "ema": {"module": MEAN, "decay": 0.9}}, "ema"),
    "one state": ({"state_dict": prefixed("model.", LAST) | prefixed("ema_model.", MEAN)}, "ema_model"),
    "torch": (prefixed("model.", LAST) | prefixed("ema_model.module.", MEAN) | COUNT, "ema_model"),
    "Lightning, a head": (
        {
            "state_dict": prefixed("backbone.", LAST) | HEAD,
            "ema_state": prefixed("backbone.", MEAN),
            **LIGHTNING,
        },
        "ema_state",
    ),
}


def test_the_head_under_a_lightning_module_s_model_survives_the_average_beside_it(tmp_path):
    """With half of the names under `ema_model.`, `model.` was no longer stripped, and the head was lost."""
    last, mean = (prefixed("backbone.", weights) | HEAD for weights in (LAST, MEAN))
    file = {"state_dict": prefixed("model.", last) | prefixed("ema_model.", mean), **LIGHTNING}
    opened = reopened(file, tmp_path)
    assert opened.head is not None and same(opened.encoder, PLAIN)
    assert "--weights ema takes it" in opened.notes[-1]
    assert checkpoints.open(tmp_path / "file.pt", weights="ema").head is not None


@pytest.mark.parametrize("form", BOTH)
def test_of_weights_and_their_moving_average_the_last_are_taken_and_the_other_on_request(form, tmp_path):
    state, where = BOTH[form]
    averaged = copy.deepcopy(PLAIN)
    averaged.load_state_dict(MEAN)
    opened = reopened(state, tmp_path)
    assert same(opened.encoder, PLAIN)
    assert f"lies beside, under '{where}', and was not taken (--weights ema takes it)" in opened.notes[-1]
    other = checkpoints.open(tmp_path / "file.pt", weights="ema")
    assert same(other.encoder, averaged) and not same(other.encoder, PLAIN)
    assert f"these weights are a moving average, under '{where}'" in other.notes
    has_head = "head" in form  # which the average lacks
    assert (opened.head is not None) == (other.head is not None) == has_head
    assert any("head is of the last weights" in note for note in other.notes) == has_head


def test_where_there_is_no_average_that_is_said_and_an_average_alone_is_taken(tmp_path):
    assert reopened({"ema": MEAN}, tmp_path).notes[-1] == "these weights are a moving average, under 'ema'"
    torch.save({"state_dict": LAST, "scheme": MEAN}, tmp_path / "a.pt")
    assert not any("average" in note for note in checkpoints.open(tmp_path / "a.pt").notes)
    with pytest.raises(ValueError, match="holds no moving average of its weights"):
        checkpoints.open(tmp_path / "a.pt", weights="ema")
    with pytest.raises(ValueError, match="weights is 'best', but there are only 'ema', state_dict, scheme"):
        checkpoints.open(tmp_path / "a.pt", weights="best")


# ---- masks, folders, the name of the network ---------------------------------------------------------------


def test_pruned_weights_are_multiplied_by_their_masks(tmp_path):
    net = copy.deepcopy(PLAIN)
    convolutions = [module for module in net.modules() if isinstance(module, nn.Conv2d)]
    for module in convolutions:
        prune.l1_unstructured(module, "weight", 0.3)
    opened = reopened(net.state_dict(), tmp_path)
    for module in convolutions:
        prune.remove(module, "weight")  # torch's own product
    assert same(opened.encoder, net) and not same(opened.encoder, PLAIN)
    assert opened.notes[0] == "20 of its weights were pruned: each is multiplied by the mask beside it"


def test_what_is_made_of_a_file_is_no_larger_than_it(tmp_path):
    """A thousand names of one tensor: masks multiplied would be a thousand of them."""
    one, large = torch.ones(1), torch.ones(1, 1, 10**6)
    masked = {f"{k}.weight_{what}": large for k in range(1000) for what in ("orig", "mask")}
    tokens = {"register_tokens": one, "cls_token": large.view(-1, 1, 1), "pos_embed": large}
    averages = {f"ema_{k}.{part}": one for k in range(10_000) for part in "abcd"}
    many = {"." * 400 + f"blocks.{k}.": one for k in range(10_000)}
    for state in (masked, tokens | {"ls1.gamma": one}, averages, many):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(ValueError, match="holds no encoder"):
            reopened(state, tmp_path)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before  # kB on Linux
        assert grown < 300_000 * (1024 if sys.platform == "darwin" else 1)


def test_a_hubs_folder_is_opened_by_the_file_in_it(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"architecture": "resnet18.a1_in1k"}))
    (tmp_path / "model.safetensors").write_bytes(safetensors.torch.save(LAST))
    (tmp_path / "pytorch_model.bin").write_bytes(b"the same once more")
    opened = checkpoints.open(tmp_path)
    assert same(opened.encoder, PLAIN) and opened.path == str(tmp_path / "model.safetensors")
    assert not any("names" in note for note in opened.notes)
    for broken in ("[" * 100_000, "{", "[1]", '{"architecture": 3}', "\xff"):
        (tmp_path / "config.json").write_text(broken, "latin-1")
        assert checkpoints.open(tmp_path).arch == "resnet18"


def test_a_folder_of_several_files_asks_for_one_by_its_names(tmp_path):
    for name in ("a.pt", "b.ckpt"):
        torch.save(LAST, tmp_path / name)
    with pytest.raises(ValueError, match=r"is a folder.*name one of the files in it: a\.pt, b\.ckpt"):
        checkpoints.open(tmp_path)


def resnetblur18() -> nn.Module:
    """A network of ResNet-18's names and shapes that computes otherwise."""
    net = torchvision.models.resnet18(num_classes=1)
    net.fc, net.relu = nn.Identity(), nn.GELU()
    return net


def test_a_network_that_the_file_names_is_taken_where_it_fits(monkeypatch, tmp_path):
    """timm's resnetblur50 was opened as resnet50, which has its names and shapes, and features off by 4 %."""
    installed_timm(monkeypatch, "resnetblur18", resnetblur18)
    timm = resnetblur18().eval()
    timm.load_state_dict(LAST)
    state = prefixed("backbone.", LAST) | HEAD
    for place in ({"arch": "resnetblur18"}, {"args": {"model": "resnetblur18.a1_in1k"}}):
        opened = reopened({"state_dict": state, **place}, tmp_path)
        assert opened.arch == "timm:resnetblur18" and same(opened.encoder, timm)
        assert not same(opened.encoder, PLAIN)
        assert opened.head is not None and "its weights fit that network" in opened.notes[-1]
    assert reopened({"state_dict": state, "arch": "resnetblur18"}, tmp_path, "resnet18").arch == "resnet18"


@pytest.mark.parametrize("said", ["resnet18", "ResNet-18", "simclr", "resnet18.a1_in1k", 7, "x" * 10**5])
def test_a_name_of_the_same_network_or_of_none_says_nothing(said, tmp_path):
    assert not any("names" in note for note in reopened({"arch": said, "model": LAST}, tmp_path).notes)


@pytest.mark.parametrize("said", ["resnet34", "resnetblur18x", "vit_small"])
def test_a_file_that_names_another_network_than_its_shapes_is_said_to(said, tmp_path):
    opened = reopened({"arch": said, "model": LAST}, tmp_path)
    assert opened.arch == "resnet18" and same(opened.encoder, PLAIN)
    assert f"the file names '{said}' as its network" in opened.notes[-1]


# ---- transformers ------------------------------------------------------------------------------------------


def chunked(state: dict[str, torch.Tensor], size: int = 4) -> dict[str, torch.Tensor]:
    """Blocks as DINOv2's training keeps them: the block's number behind its chunk's."""
    return {
        re.sub(r"^blocks\.(\d+)\.", lambda m: f"blocks.{int(m[1]) // size}.{m[1]}.", name): value
        for name, value in state.items()
    }


def test_blocks_in_chunks_are_one_row(tmp_path):
    from tests.checkpoints.test_layouts import as_timm_names_it, small_vit

    net = seeded(small_vit)
    state = {as_timm_names_it(name): value for name, value in net.state_dict().items()}
    opened = reopened({"teacher": prefixed("backbone.", chunked(state)), "iteration": 7}, tmp_path)
    net.heads = nn.Identity()
    assert opened.arch == "vit_t_16" and same(opened.encoder, net)


@pytest.mark.parametrize("side", [98, 224])
@pytest.mark.parametrize("name", ["vit_small_patch14_dinov2", "vit_small_patch14_reg4_dinov2"])
def test_dinov2_opens_as_meta_and_its_training_write_it_at_any_size(name, side, tmp_path):
    timm = pytest.importorskip("timm", reason="timm is not installed")
    net = seeded(lambda: timm.create_model(name, num_classes=0, img_size=side))
    state = net.state_dict() | {"mask_token": torch.zeros(1, 384)}
    if "reg_token" in state:  # Meta adds a position to the class token, and calls registers otherwise
        place = 0.02 * torch.randn(1, 1, 384)
        state["register_tokens"] = state.pop("reg_token")
        state["pos_embed"] = torch.cat([place, state["pos_embed"]], dim=1)
        state["cls_token"] = state["cls_token"] - place
        net.cls_token.data = state["cls_token"] + place  # as it is rounded
    training = {
        "teacher": prefixed("backbone.", chunked(state)) | {"dino_head.mlp.0.weight": torch.ones(4, 4)}
    }
    for held, arch in ((state, None), (training, None), (state, f"timm:{name}")):
        opened = reopened(held, tmp_path, arch)
        assert (opened.arch, opened.side) == (f"timm:{name}", side)
        assert same(opened.encoder, net, side)
