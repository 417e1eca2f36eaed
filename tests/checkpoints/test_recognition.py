"""Which network, and which head: wrappers, unknown beginnings, copies, heads that no layout names."""

import pytest
import torch
from torch import nn

from clutils import checkpoints, encoders
from tests.checkpoints.files import conv_state, prefixed, reopened, seeded

NET = conv_state()
WIDTH = checkpoints.backbones.recognise(NET).build().features


def is_whole(opened: checkpoints.Opened) -> bool:
    own = opened.encoder.state_dict()
    return all(torch.equal(own[name], value) for name, value in NET.items())


WRAPPED = {  # how a wrapper spells names
    "regional torch.compile": lambda name: name.replace("convolutions.", "convolutions._orig_mod."),
    "Lightning Fabric": lambda name: f"_forward_module.{name}",
    "FSDP, outside and within": lambda name: (
        "_fsdp_wrapped_module." + name.replace(".0.", "._fsdp_wrapped_module.0.")
    ),
    "activation checkpoints": lambda name: name.replace(".1.", ".1._checkpoint_wrapped_module."),
    "compiled, then parallel, inside": lambda name: f"backbone.module._orig_mod.{name}",
    "a beginning of nobody's": lambda name: f"cnn.{name}",
    "two beginnings of nobody's": lambda name: f"my.backbone.{name}",
}


@pytest.mark.parametrize("how", WRAPPED)
def test_a_wrapper_anywhere_in_a_name_and_an_unknown_beginning_open(how, tmp_path):
    opened = reopened({"state_dict": {WRAPPED[how](name): value for name, value in NET.items()}}, tmp_path)
    assert is_whole(opened) and opened.missing == []


def test_of_two_networks_under_unknown_beginnings_none_is_taken_and_both_are_named(tmp_path):
    other = {name: value + 1 if value.is_floating_point() else value for name, value in NET.items()}
    file = prefixed("left.", NET) | prefixed("right.", other)
    with pytest.raises(
        ValueError, match=r"conv16 under 'left' and conv16 under 'right': --weights BEGINNING"
    ):
        reopened(file, tmp_path)
    assert is_whole(checkpoints.open(tmp_path / "file.pt", weights="left"))
    assert not is_whole(checkpoints.open(tmp_path / "file.pt", weights="right."))


def test_of_teacher_and_student_one_is_read_and_the_other_can_be_asked_for(tmp_path):
    other = {name: value + 1 if value.is_floating_point() else value for name, value in NET.items()}
    opened = reopened(
        {"student": prefixed("backbone.", other), "teacher": prefixed("backbone.", NET)}, tmp_path
    )
    assert is_whole(opened)
    assert "another conv16 lies under 'student'; read was the one under 'teacher'" in opened.notes[-1]
    assert not is_whole(checkpoints.open(tmp_path / "file.pt", weights="student"))


def test_a_refusal_names_the_option_that_says_which_network_it_is(tmp_path):
    with pytest.raises(ValueError, match=r"--arch timm:NAME says which network it is; any network of yours"):
        reopened({f"a.{k}.weight": torch.ones(3) for k in range(9)}, tmp_path)
    with pytest.raises(
        ValueError, match=r"--arch timm:NAME says which .*it looks like timm:vit_small_patch14_din"
    ):
        reopened({f"blocks.{k}.ls1.gamma": torch.ones(3) for k in range(9)}, tmp_path)


def mlp(*layers: nn.Module) -> nn.Sequential:
    return seeded(lambda: nn.Sequential(*layers))


HEAD = mlp(nn.Linear(WIDTH, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 4))
PLAIN = mlp(nn.Linear(WIDTH, 8, bias=False), nn.ReLU(), nn.Linear(8, 4, bias=False))
BY_NAME = {"0": "fc1", "1": "bn1", "3": "fc2"}
NAMED_LAYERS = {f"{BY_NAME[n[0]]}{n[1:]}": value for n, value in HEAD.state_dict().items()}
WITH_HEAD = {  # where the head lies -> the file, and the head
    "beside the encoder": (prefixed("encoder.", NET) | prefixed("projection_head.", HEAD.state_dict()), HEAD),
    "in a Lightning module": (
        {"state_dict": prefixed("model.encoder.", NET) | prefixed("model.projector.", HEAD.state_dict())},
        HEAD,
    ),
    "in place of the classifier": (NET | prefixed("fc.", HEAD.state_dict()), HEAD),
    "in one dictionary": ({"state_dict": NET, "head": HEAD.state_dict()}, HEAD),
    "in one dictionary, two tensors": ({"encoder": NET, "head": PLAIN.state_dict()}, PLAIN),
    "with names for layers": (prefixed("net.", NET) | prefixed("g.", NAMED_LAYERS), HEAD),
    "with a predictor": (
        prefixed("net.", NET)
        | prefixed("projector.", HEAD.state_dict())
        | prefixed("predictor.", mlp(nn.Linear(WIDTH, 8), nn.ReLU(), nn.Linear(8, 4)).state_dict()),
        HEAD,
    ),
    "of the student of a momentum encoder": (
        prefixed("encoder_q.", NET)
        | prefixed("encoder_k.", NET)
        | prefixed("proj_q.", HEAD.state_dict())
        | prefixed("momentum_proj.", PLAIN.state_dict()),
        HEAD,
    ),
}


@pytest.mark.parametrize("where", WITH_HEAD)
def test_the_head_in_the_file_is_used_wherever_it_lies(where, tmp_path):
    file, head = WITH_HEAD[where]
    opened = reopened(file, tmp_path)
    z = torch.rand(3, WIDTH, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        assert is_whole(opened) and torch.allclose(opened.head(z), head(z), atol=1e-5)


NO_HEAD = {
    "a lone classifier": NET | {"fc.weight": torch.ones(10, WIDTH), "fc.bias": torch.zeros(10)},
    "a predictor alone": prefixed("encoder.", NET) | prefixed("predictor.", HEAD.state_dict()),
    "prototypes": prefixed("encoder.", NET) | {"prototypes.weight": torch.ones(10, WIDTH)},
    "DINO's, whose layers have a GELU between": prefixed("backbone.", NET)
    | prefixed("head.mlp.", PLAIN.state_dict())
    | {"head.last_layer.weight_v": torch.ones(16, 4), "head.last_layer.weight_g": torch.ones(16, 1)},
    "of another width": NET
    | prefixed("head.", mlp(nn.Linear(7, 8), nn.ReLU(), nn.Linear(8, 4)).state_dict()),
}


@pytest.mark.parametrize("what", NO_HEAD)
def test_what_is_no_head_is_not_taken_for_one(what, tmp_path):
    opened = reopened(NO_HEAD[what], tmp_path)
    assert is_whole(opened) and opened.head is None


def test_of_two_heads_none_is_used_and_both_are_named_and_one_can_be_asked_for(tmp_path):
    file = prefixed("encoder.", NET) | prefixed("a.", HEAD.state_dict()) | prefixed("b.", PLAIN.state_dict())
    opened = reopened(file, tmp_path)
    assert opened.head is None and "several heads fit, under 'a.', 'b.': none is used" in opened.notes[-1]
    asked = checkpoints.open(tmp_path / "file.pt", head="b")
    z = torch.rand(3, WIDTH)
    with torch.no_grad():
        assert torch.allclose(asked.head(z), PLAIN(z), atol=1e-5)
    with pytest.raises(ValueError, match=r"head is 'c', but no linear layers .* they are under 'a\.', 'b\.'"):
        checkpoints.open(tmp_path / "file.pt", head="c")


@pytest.mark.parametrize("given", [3, None, {"conv1.weight": torch.zeros(4, 3, 3, 3)}, [1, 2]])
def test_what_is_no_file_and_no_network_is_quoted(given):
    with pytest.raises(ValueError, match=r"is no file, and no nn\.Module that gives features"):
        checkpoints.open(given)


@pytest.mark.parametrize("key", ["temperature", "tau"])
def test_a_temperature_beside_the_weights_is_taken(key, tmp_path):
    torch.save({"model": encoders.build("conv16").state_dict(), key: 0.3}, tmp_path / "own.pt")
    assert checkpoints.open(tmp_path / "own.pt").temperature == 0.3
