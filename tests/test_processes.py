"""Two processes are one: the same loss, the same gradient, and nothing that gets out of step between them."""

import contextlib
import io
import os
import re
import socket
import time
from datetime import timedelta
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch import distributed as group

from clutils import __main__ as command_line
from clutils import losses, methods, processes, training
from tests.runs import DIGITS, advance, past, small, weights
from tests.test_readme import code

B, D = 256, 16
METHODS = {name: {} for name in methods.catalogue("pictures")} | {"moco": {"queue_size": 70}}
LOSSES = {
    name: entry.cls()
    for name, entry in losses.catalogue().items()
    if name not in ("MoCHi", "SSCL")  # which have 1,024 hardest by default
} | {"SSCL": losses.SSCL(hardest=40, synthetic=20), "MoCHi": losses.MoCHi(hardest=40, synthetic=20)}
NEAR = {"rtol": 0, "atol": 1e-5}


STARTS = "forkserver" if hasattr(os, "fork") else "spawn"


def forking():
    """What starts processes: forked from one that has imported this file, so that none does it again."""
    context = torch.multiprocessing.get_context(STARTS)
    if STARTS == "forkserver":
        context.set_forkserver_preload([__name__])
    return context


class Plain(nn.Sequential):
    """An encoder without batch normalisation: (N, 1, 8, 8) -> (N, 12)."""

    features = 12

    def __init__(self) -> None:
        with torch.random.fork_rng():
            torch.manual_seed(3)
            super().__init__(
                nn.Conv2d(1, 12, 3, bias=False), nn.Tanh(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
            )


def embeddings(number: int) -> Tensor:
    return torch.randn(number, D, generator=torch.Generator().manual_seed(number))


def loss_and_gradient(loss: nn.Module) -> dict[str, Tensor]:
    """Of two views of the whole batch, which every process holds as one weight and takes its share of."""
    if hasattr(loss, "generator"):
        loss.generator = torch.Generator().manual_seed(5)
    z = embeddings(2 * B).requires_grad_()
    z1, z2 = processes.all_gather(processes.local_shard(z)).chunk(2)
    given = {"labels": torch.arange(B) % 7} if type(loss) is losses.SupCon else {}
    if "index" in getattr(loss, "accepts", ()):
        loss.allocate(B)
        given["index"] = torch.arange(B)
    value = loss(z1, z2, **given)
    value.backward()
    processes.average([z.grad])
    found = {"loss": value.detach(), "gradient": z.grad}
    return found | ({"temperature": loss.adaptive_temperature} if type(loss) is losses.MACL else {})


def own_loop() -> dict[str, Tensor]:
    """The example of docs/own_loop.md with this process's images, in one process with all of them."""
    parts = {"encoder": Plain(), "head": nn.Sequential()}
    x1, x2 = torch.rand(2, 32, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    scope = parts | {"torch": torch, "loss": losses.NTXent(0.1)}
    scope |= {"x1": processes.local_shard(x1), "x2": processes.local_shard(x2)}
    if processes.number() > 1:
        exec(code("own_loop", "from torch import nn\n\nfrom clutils import processes"), scope)
    else:
        scope["value"] = scope["loss"](parts["encoder"](x1), parts["encoder"](x2))
        scope["value"].backward()
    return {"loss": scope["value"].detach(), "gradient": parts["encoder"][0].weight.grad}


def trained(method: str, encoder: nn.Module | None) -> dict[str, object]:
    """Three steps: the gradient of the first, the losses, and all that a run carries on."""
    run = small(method=method, encoder=encoder, precision="float32", method_settings=METHODS[method])
    run.step()
    gradient = {name: p.grad.clone() for name, p in run.method.named_parameters() if p.grad is not None}
    advance(run, 2)
    return {
        "gradient": gradient,
        "losses": torch.tensor([row["loss"] for row in run.rows]),
        "history": past(run).to_csv(),
        "weights": weights(run),
    }


def gone_on(folder: Path) -> dict[str, Tensor]:
    """As `trained("moco", None)`, but saved by the first process after two steps and resumed by both."""
    run = small(method="moco", precision="float32", method_settings=METHODS["moco"])
    advance(run, 2)
    if not processes.rank():
        run.save(folder / "two_steps.pt")
    group.barrier()
    return weights(advance(training.resume(folder / "two_steps.pt", data=DIGITS), 1))


def command(folder: Path) -> dict[str, object]:
    """What `train` on vectors, with an encoder that has no batch normalisation, returns and prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        settings = ("--data", "vectors:digits", "--batch-size", "32", "--steps", "4", "--device", "cpu")
        code = command_line.main(["train", *settings, "--loss", "MACL", "--out", str(folder / "run")])
    return {"code": code, "printed": printed.getvalue()}


def everything() -> dict[str, object]:
    found = {f"loss {name}": loss_and_gradient(loss) for name, loss in LOSSES.items()}
    found["loss in a loop of one's own"] = own_loop()
    return found | {f"method {method}": trained(method, Plain()) for method in METHODS}


def one_of_two(rank: int, folder: Path) -> None:
    torch.set_num_threads(1)
    store = group.FileStore(str(folder / "store"), 2)
    group.init_process_group("gloo", rank=rank, world_size=2, store=store, timeout=timedelta(seconds=120))
    found = everything() | {"conv16": trained("moco", None), "command": command(folder)}
    found["gone on"] = gone_on(folder)
    try:
        small(batch_size=33)
    except ValueError as error:
        found["odd batch"] = str(error)
    group.destroy_process_group()
    torch.save(found, folder / f"{rank}.pt")


@pytest.fixture
def launched(monkeypatch) -> None:
    """As if torchrun had started this process, the second of two."""
    started = {"TORCHELASTIC_RUN_ID": "1", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "LOCAL_RANK": "1"}
    for name, value in started.items():
        monkeypatch.setitem(os.environ, name, value)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, dict, dict, Path]:
    """The same of one process, and of each of two; and the folder in which the two ran the command."""
    folder = tmp_path_factory.mktemp("two")
    forking()
    torch.multiprocessing.start_processes(one_of_two, args=(folder,), nprocs=2, start_method=STARTS)
    one = everything()
    return one, *(torch.load(folder / f"{rank}.pt") for rank in (0, 1)), folder


@pytest.mark.parametrize("name", [*LOSSES, "in a loop of one's own"])
def test_the_loss_and_gradient_of_given_embeddings_are_those_of_one_process(name, found):
    one, *two, _ = found
    expected = one[f"loss {name}"]
    assert float(expected["gradient"].abs().max()) > 1e-5
    for mine in two:
        assert mine[f"loss {name}"].keys() == expected.keys()
        for key, value in expected.items():  # MACL's temperature too: from the alignment of the whole batch
            torch.testing.assert_close(mine[f"loss {name}"][key], value, **NEAR)


@pytest.mark.parametrize("method", METHODS)
def test_a_run_without_batch_normalisation_learns_what_one_process_would(method, found):
    one, *two, _ = found
    expected = one[f"method {method}"]
    for mine in (process[f"method {method}"] for process in two):
        assert mine["gradient"].keys() == expected["gradient"].keys()
        length = torch.stack([gradient.norm() for gradient in expected["gradient"].values()]).norm()
        for name, gradient in expected["gradient"].items():
            torch.testing.assert_close(mine["gradient"][name] / length, gradient / length, **NEAR)
        torch.testing.assert_close(mine["losses"][:1], expected["losses"][:1], **NEAR)
        torch.testing.assert_close(mine["losses"], expected["losses"], rtol=1e-3, atol=0)


@pytest.mark.parametrize("run", [*(f"method {method}" for method in METHODS), "conv16"])
def test_two_processes_are_in_step_to_the_bit_queue_and_noise_generator_included(run, found):
    _, first, second, _ = found
    assert first[run]["history"] == second[run]["history"]
    for name, value in first[run]["weights"].items():
        assert torch.equal(value, second[run]["weights"][name]), name
    if run == "method moco":
        assert first[run]["weights"]["next_place"] == 3 * 32 % 70


def test_the_queue_holds_the_keys_that_one_process_would_have_put_there(found):
    one, first, *_ = found
    queues = [process["method moco"]["weights"]["queue"] for process in (one, first)]
    torch.testing.assert_close(queues[0][:32], queues[1][:32], rtol=0, atol=1e-3)
    assert not torch.equal(queues[0][:32], small(method="moco", method_settings=METHODS["moco"]).method.queue)


def test_a_checkpoint_of_the_first_process_is_enough_for_both_to_go_on_bit_for_bit(found):
    for process in found[1:3]:
        straight = process["conv16"]["weights"]
        assert process["gone on"].keys() == straight.keys()
        assert all(torch.equal(process["gone on"][name], value) for name, value in straight.items())


def test_only_the_first_process_writes_and_prints(found):
    _, first, second, folder = found
    assert first["command"]["code"] == second["command"]["code"] == 0
    assert re.search(r"on cpu in (bfloat16|float32), 2 processes: step 0 of 4", first["command"]["printed"])
    assert second["command"]["printed"] == ""
    names = {path.name for path in (folder / "run").iterdir()}
    tables = {"history.csv", "config.json", "measured.csv", "map.npz", "replay.html"}
    assert names == {"checkpoint.pt", *tables}  # no .part either
    run = training.resume(folder / "run" / "checkpoint.pt")
    alone = training.Run(data="vectors:digits", loss=losses.MACL(), batch_size=32, steps=4, device="cpu")
    alone.finish(progress=False)
    assert run.steps_done == 4
    pairs = [torch.tensor([row["loss"] for row in one.rows]) for one in (run, alone)]
    torch.testing.assert_close(*pairs, rtol=1e-2, atol=0)  # the encoder may compute in bfloat16


def test_a_batch_that_can_not_be_shared_equally_is_refused(found):
    for process in found[1:3]:
        assert process["odd batch"] == "training: batch_size is 33, but 2 processes can only share it equally"


def test_one_process_has_nothing_to_join_or_gather():
    rows = torch.arange(3.0)
    with processes.process_group() as rank, processes.first_then_others():
        assert (rank, processes.number(), processes.rank()) == (0, 1, 0)
        assert processes.all_gather(processes.local_shard(rows)).equal(rows)
        processes.average([rows])
    assert rows.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("device", "said"),
    [
        ("cuda", "torchrun started 2 here, but there are 1 GPUs"),
        ("cuda:0", r"device is 'cuda:0', but each of the 2 processes .* --device cuda"),
    ],
)
def test_gpus_that_can_t_be_shared_are_said_before_anything_waits(device, said, launched, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ValueError, match=said), processes.process_group(device):
        pass


def slow_then_dead(rank: int, port: int, folder: Path) -> None:
    """One of two, as torchrun starts them: one loads longer than a step may take, the other dies later."""
    started = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2}
    started |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "TORCHELASTIC_RUN_ID": 1}
    os.environ.update({name: str(value) for name, value in started.items()})
    processes.PATIENCE = timedelta(seconds=2)
    said = []
    with processes.process_group("cpu"):
        with processes.first_then_others():
            time.sleep(4)  # both: the first waits for the second, too
            said.append("loaded")
        run = small(steps=3)
        run.step()
        if rank:
            os._exit(1)
        try:
            run.step()
        except ConnectionError as error:
            said.append(str(error))
        (folder / "said").write_text("\n".join(said))
        os._exit(0)  # nobody is left to take leave of


def test_a_download_may_take_its_time_and_a_dead_peer_ends_the_run_in_one_line(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = forking()
    both = [context.Process(target=slow_then_dead, args=(rank, port, tmp_path)) for rank in (0, 1)]
    for process in both:
        process.start()
    for process in both:
        process.join(120)
    loaded, lost = (tmp_path / "said").read_text().splitlines()
    assert loaded == "loaded" and lost.startswith("processes: another one has ended, so this one stops: ")


def test_each_process_says_which_gpu_is_its_own_and_waits_for_its_peers(launched, monkeypatch):
    """NCCL itself is not there to be tried: this holds what it is asked for."""
    asked = {}
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", lambda number: asked.update(current=number))
    monkeypatch.setattr(group, "init_process_group", lambda kind, **given: asked.update(given, kind=kind))
    monkeypatch.setattr(group, "new_group", lambda **given: asked.update(beside=given))
    monkeypatch.setattr(group, "destroy_process_group", lambda: None)
    monkeypatch.delitem(os.environ, "TORCH_NCCL_BLOCKING_WAIT", raising=False)
    with processes.process_group("cuda"):
        assert os.environ.pop("TORCH_NCCL_BLOCKING_WAIT") == "1"
    assert asked == {
        "current": 1,
        "kind": "nccl",
        "device_id": torch.device("cuda", 1),
        "timeout": processes.PATIENCE,
        "beside": {"backend": "gloo", "timeout": processes.DOWNLOAD},
    }


@pytest.mark.parametrize("name", ["RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"])
def test_a_number_of_torchruns_that_is_none_is_quoted(monkeypatch, name):
    for key, value in {"TORCHELASTIC_RUN_ID": "1", "WORLD_SIZE": "2", name: "abc"}.items():
        monkeypatch.setenv(key, value)
    with (
        pytest.raises(ValueError, match=f"{name} is 'abc', but torchrun sets it to a whole number"),
        processes.process_group("cpu"),
    ):
        pass
