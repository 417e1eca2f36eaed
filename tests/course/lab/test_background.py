"""A run in a thread of its own: the same run, that others may change, read and stop meanwhile."""

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch

from clutils import losses, training
from clutils.course.lab.background import Background
from tests.runs import advance, past, same, small, weights

ROOT = Path(__file__).resolve().parents[3]
LONG = 60.0  # seconds that nothing here takes: a test that would hang fails instead


class Gate:
    """A callback of a run that waits, after this step, until it is let go."""

    def __init__(self, after: int) -> None:
        self.after, self.reached, self.go = after, threading.Event(), threading.Event()

    def __call__(self, run: training.Run) -> None:
        if run.steps_done == self.after:
            self.reached.set()
            self.go.wait(LONG)


def held(after: int, steps: int, **settings) -> tuple[Background, Gate]:
    """A run that trains in the background, and waits at the gate after this step."""
    gate = Gate(after)
    background = Background(small(steps=steps, **settings), callbacks=[gate]).start()
    assert gate.reached.wait(LONG)
    return background, gate


def test_a_run_in_the_background_is_to_the_bit_the_run_in_front():
    background = Background(small(steps=4)).start()
    assert background.wait(LONG) and background.error is None and not background.running
    straight = advance(small(steps=4), 4)
    assert same(weights(background.run), weights(straight)) and past(background.run).equals(past(straight))
    assert background.status == "step 4 of 4, done"
    with pytest.raises(ValueError, match="all 4 steps are done; set run"):
        background.start()
    background.run.steps = 5
    assert background.start().wait(LONG) and background.run.steps_done == 5


def test_it_stops_after_a_step_and_goes_on_as_if_it_had_not():
    assert Background(small(steps=5)).status == "step 0 of 5, not started"
    background, gate = held(after=2, steps=5)
    assert background.running and background.status == "step 2 of 5"
    stopping = threading.Thread(target=background.stop)
    stopping.start()
    while not background._stopping:
        time.sleep(0.001)
    gate.go.set()
    stopping.join(LONG)
    assert not background.running and background.run.steps_done == 2
    assert background.status == "step 2 of 5, stopped"
    assert background.stop() is background and background.wait(LONG)
    assert background.start().wait(LONG)
    assert same(weights(background.run), weights(advance(small(steps=5), 5)))


def test_a_change_between_two_steps_acts_on_the_next_and_is_in_the_history_from_there():
    background, gate = held(after=2, steps=4)

    def turn(run: training.Run) -> None:
        run.loss.temperature, run.learning_rate = 0.7, 1e-3

    turning = background.call(turn)
    gate.go.set()
    assert turning.result(LONG) is None
    background.wait(LONG)
    straight = advance(small(steps=4), 2)
    straight.loss.temperature, straight.learning_rate = 0.7, 1e-3
    assert background.run.history["temperature"].tolist() == [0.2, 0.2, 0.7, 0.7]
    assert same(weights(background.run), weights(advance(straight, 2)))
    assert past(background.run).equals(past(straight))


def test_a_posted_function_is_done_after_the_step_under_way_and_finds_the_run_between_two_steps():
    background = Background(small(steps=100_000)).start()
    counts = []
    for _ in range(5):
        asked = background.run.steps_done

        def between(run: training.Run) -> tuple[int, bool, str]:
            before, rows = weights(run), len(run.history)
            whole = same(before, weights(run)) and rows == run.steps_done
            return run.steps_done, whole, threading.current_thread().name

        done, whole, name = background.call(between).result(LONG)
        counts.append(done - asked)
        assert whole and name == "clutils training"
    background.stop()
    assert max(counts) <= 2  # the one under way, and one that began between the count and the call


def test_posted_functions_are_done_in_their_order_and_by_the_run_itself_at_once():
    (background, gate), order = held(after=1, steps=3), []

    def first(run: training.Run) -> str:
        background.call(lambda _: order.append("within")).result(0)  # the run's own thread waits for nobody
        order.append("first")
        return "its value"

    futures = [background.call(first), background.call(lambda _: order.append("second"))]
    cancelled = background.call(lambda _: order.append("never"))
    assert cancelled.cancel() and order == []
    gate.go.set()
    assert background.wait(LONG) and futures[0].result(0) == "its value" and futures[1].result(0) is None
    assert order == ["within", "first", "second"]


def test_what_a_posted_function_raises_reaches_its_caller_and_the_run_goes_on():
    background = Background(small(steps=100_000)).start()
    with pytest.raises(ZeroDivisionError):
        background.call(lambda run: 1 / 0).result(LONG)
    assert background.running and background.error is None
    background.stop()


@pytest.mark.parametrize("end", ["stopped", "done"])
def test_what_was_posted_in_the_last_step_is_done_when_the_run_ends(end):
    background, gate = held(after=2, steps=2 if end == "done" else 9)
    late = background.call(lambda run: run.steps_done)
    background._stopping = end == "stopped"
    gate.go.set()
    assert late.result(LONG) == 2 and background.wait(LONG)


def test_when_the_thread_dies_waiting_callers_get_its_error_and_later_ones_the_run_at_rest():
    run, waiting = small(steps=9), []

    def breaks(*given, **named):
        other = threading.Thread(target=lambda: waiting.append(background.call(lambda run: run.steps_done)))
        other.start()
        other.join(LONG)
        raise RuntimeError("the cat sat")

    run.method.forward = breaks
    background = Background(run)
    background.start()
    for caller in (background.wait, lambda seconds: waiting[0].result(seconds)):
        with pytest.raises(RuntimeError, match="the cat sat"):
            caller(LONG)
    assert background.call(lambda run: run.steps_done).result(0) == 0


def test_a_step_that_is_refused_may_be_mended_and_the_run_goes_on():
    run, heard = small(steps=3), []

    def mend(error: ValueError) -> bool:
        heard.append(str(error))
        run.loss.temperature = 0.2
        return True

    run.loss.temperature = -1.0
    background = Background(run, on_refused=mend).start()
    assert background.wait(LONG) and run.done and background.error is None
    assert len(heard) == 1 and "step 1 was not taken" in heard[0]
    run.steps, run.loss.temperature = 4, -1.0
    with pytest.raises(ValueError, match="step 4 was not taken"):
        Background(run, on_refused=lambda error: False).start().wait(LONG)


def test_two_runs_at_once_are_refused_and_the_first_goes_on():
    first, gate = held(after=1, steps=3)
    second = Background(small(steps=3))
    for start in (second.start, first.start, lambda: small(steps=2).finish(progress=False)):
        with pytest.raises(
            ValueError, match=r"^training: a run is training already, at step 1 of 3: stop it"
        ):
            start()
    assert not second.running and second.run.steps_done == 0
    gate.go.set()
    assert first.wait(LONG) and first.run.done
    assert second.start().wait(LONG) and second.run.done


def test_a_run_in_front_keeps_one_in_the_background_from_starting_and_frees_the_place_when_it_breaks():
    def start_another(run: training.Run) -> None:
        Background(small(steps=2)).start()

    with pytest.raises(ValueError, match="a run is training already, at step 1 of 2"):
        small(steps=2).finish([start_another], progress=False)
    assert Background(small(steps=1)).start().wait(LONG)


@pytest.mark.parametrize("where", ["step", "callback"])
def test_an_exception_inside_ends_the_run_is_kept_shown_and_raised_to_who_waits(where):
    run, broken = small(steps=4), [True]
    real = run.method.forward

    def breaks(*arguments):
        if run.steps_done == 2 and broken:
            broken.clear()
            raise RuntimeError("the cat sat\non the cable")
        return real(*arguments) if where == "step" else None

    if where == "step":
        run.method.forward = breaks
    background = Background(run, callbacks=[breaks] if where == "callback" else []).start()
    with pytest.raises(RuntimeError, match="the cat sat"):
        background.wait(LONG)
    assert background.status == "step 2 of 4, ended by RuntimeError: the cat sat on the cable"
    assert background.run.steps_done == 2 == len(background.run.history)
    assert background.start().wait(LONG) and background.error is None  # and the place was free again
    assert same(weights(run), weights(advance(small(steps=4), 4)))


def test_a_callback_may_stop_the_run_itself():
    background = Background(small(steps=9), callbacks=[lambda run: run.steps_done == 2 and background.stop()])
    assert background.start().wait(LONG) and background.run.steps_done == 2


def test_torch_has_the_run_s_threads_in_its_steps_and_as_many_as_before_for_everyone_else():
    torch.set_num_threads(2)
    seen = []

    class Asking(losses.NTXent):
        def forward(self, *given, **named):
            seen.append(torch.get_num_threads())
            return super().forward(*given, **named)

    background, gate = held(after=1, steps=1, threads=1, loss=Asking())
    seen.append(torch.get_num_threads())
    gate.go.set()
    background.wait(LONG)
    later = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    later.start()
    later.join(LONG)
    assert seen == [1, 2, 2]


def test_the_history_is_whole_while_it_grows():
    grown, last = threading.Event(), 0
    background = Background(small(steps=100_000), callbacks=[lambda _: grown.set()]).start()
    while last < 12:
        assert grown.wait(LONG)  # not in a circle: that would take the interpreter from the run, for minutes
        grown.clear()
        table = background.run.history
        assert table["step"].tolist() == list(range(1, len(table) + 1))
        assert not table.drop(columns=["chance"]).isna().any(axis=None)
        last = len(table)
    assert background.stop().run.steps_done >= last


def test_a_process_ends_in_peace_while_a_run_trains():
    code = (
        "import threading; from tests.runs import small\n"
        "from clutils.course.lab.background import Background\n"
        "stepped = threading.Event()\n"
        "background = Background(small(steps=100_000), callbacks=[lambda _: stepped.set()]).start()\n"
        "stepped.wait()\n"
        "print(background.running)"
    )
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "True\n", "")


def test_an_interrupted_wait_leaves_the_run_training(request):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background it may be ignored
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    run = small(steps=100_000)
    background = Background(run).start()
    # to this thread, or its wait would not be woken
    timer = threading.Timer(0.3, signal.pthread_kill, [threading.get_ident(), signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        background.wait(60)
    steps = run.steps_done
    assert background.running and not background.wait(0.2)
    background.stop()
    assert not background.running and background.wait(0) and run.steps_done > steps
