"""What the pages show is what the package says: they are asked, on random settings of every loss."""

import math

import pytest
import torch

from clutils import anatomy, losses, measures, similarities
from clutils.course import sphere
from clutils.explorers import controls
from clutils.figures import style

CLOSE = 1e-6
SETTINGS = 231, 154, 110  # of W, circle, matrix: 11, 7 and 5 of each loss or more


@pytest.mark.parametrize("explorer", controls.EXPLORERS.values(), ids=list(controls.EXPLORERS))
def test_no_setting_of_a_loss_has_the_name_of_a_control(explorer):
    own = {control.name for control in explorer.controls}
    prefixes = [control.prefix for control in explorer.controls if control.prefix is not None]
    for name in controls.FAMILY if prefixes else ():
        for control in controls.of_loss(name):
            assert not own & {prefix + control.name for prefix in prefixes}, name


class Dice:
    """Random settings of a loss, on the ranges that its sliders have."""

    def __init__(self, seed: int):
        self.draw = torch.Generator().manual_seed(seed)

    def __call__(self, low: float, high: float) -> float:
        return low + (high - low) * float(torch.rand((), generator=self.draw, dtype=torch.float64))

    def whole(self, low: int, high: int) -> int:
        return int(torch.randint(low, high + 1, (), generator=self.draw))

    def settings(self, name: str) -> dict:
        found = {}
        for control in controls.of_loss(name):
            within = control.within
            if within.switch:
                found[control.name] = self(0, 1) < 0.5
            elif within.also and self(0, 1) < 0.2:
                found[control.name] = within.also[0]
            else:
                low, high, how = within.dial
                found[control.name] = (
                    math.exp(self(math.log(low), math.log(high))) if how == "log" else self(low, high)
                )
        if found.get("batch_hard"):
            found["semi_hard"] = False
        return found


def loss_of(state: dict):
    """The package's loss, with the settings that a page has."""
    given = {c.name: state[c.name] for c in controls.of_loss(state["loss"])}
    given = {key: math.inf if value == "inf" else value for key, value in given.items()}
    return losses.catalogue()[state["loss"]].cls(**given)


def plain(settings: dict) -> dict:
    return {key: "inf" if value == math.inf else value for key, value in settings.items()}


def assert_close(found, expected, name: str, scale: float = 1.0) -> None:
    """Equal to 1e-6 of 1, or of the largest number beside it, where forces of a billion cancel."""
    found, expected = torch.as_tensor(found).double(), torch.as_tensor(expected).double()
    assert found.shape == expected.shape, name
    off = (found - expected).abs() / max(scale, 1.0, float(expected.abs().max()) if expected.numel() else 0)
    assert float(off.max()) < CLOSE, (
        f"{name}: {found.tolist()} in the page, {expected.tolist()} of the package"
    )


SET = """(app, states) => states.map((state) => {
  const words = { inf: Infinity };
  for (const [name, value] of Object.entries(state)) app.state[name] = words[value] ?? value;
  return SHOWN;
})"""


def answers(page, shown: str, states: list[dict]) -> list[tuple]:
    """Each state, and what the page shows in it: the value of this JavaScript."""
    return list(zip(states, page.ask(SET.replace("SHOWN", shown), states), strict=True))


def test_value_forces_W_and_K_eff_of_every_loss_on_any_negatives(kept):
    dice, cases = Dice(0), []
    for k in range(SETTINGS[0]):
        name = controls.FAMILY[k % len(controls.FAMILY)]
        shape = ("equal", "gaussian", "few hard", "drawn")[dice.whole(0, 3)]
        drawn = "".join("0123456789abcdefghijklmnopqrstuvwxyz"[dice.whole(0, 35)] for _ in range(40))
        place = {"similarity": dice(-1, 1), "spread": dice(0.02, 0.6), "hard": dice(-1, 1)}
        state = {"loss": name, "shape": shape, "drawn": drawn, "positive": dice(-1, 1), **place}
        state |= {"number": dice.whole(1, 20), "count": dice.whole(1, 40) ** 2}
        cases.append(state | plain(dice.settings(name)))
    shown = """(() => { const found = app.ask("loss");
        return { ...found, push: [...found.push], W: Number.isFinite(found.W) ? found.W : null }; })()"""
    turned = 0
    for state, found in answers(kept("W"), shown, cases):
        name, loss = state["loss"], loss_of(state)
        values, counts = torch.tensor(found["n"], dtype=torch.float64), torch.tensor(found["m"])
        assert int(counts.sum()) == state["count"] and int(counts.min()) > 0
        s, n = (
            torch.tensor([[state["positive"]]], dtype=torch.float64),
            values.repeat_interleave(counts)[None],
        )
        pull, push = anatomy.forces(loss, s, n)
        of_value = torch.zeros(len(values), dtype=torch.float64)
        of_value.index_add_(0, torch.arange(len(values)).repeat_interleave(counts), push[0])
        assert_close(found["value"], loss.per_anchor(s, n)[0], f"{name}, value", abs(float(s)))
        largest = float(push.abs().max())
        assert_close(found["pull"], pull[0, 0], f"{name}, pull", largest)
        assert_close(torch.tensor(found["push"]) * counts, of_value, f"{name}, push")
        hard = state.get("semi_hard") or state.get("batch_hard")  # ties: whose push it is means nothing
        if not hard:
            assert_close(found["K_eff"], anatomy.effective_negatives(push)[0], f"{name}, K_eff")
        loss.per_anchor(s, n)
        t = float(loss.reported.get("effective_temperature", getattr(loss, "temperature", 0.0)))
        if 0 < t < math.inf:
            assert_close(found["W"], anatomy.gradient_scale(s, n, t)[0], f"{name}, W")
        turn = found["turning"]
        assert turn["turns"] == bool(n.mean() < s < n.max())
        if turn["turns"]:
            turned += 1
            beside = anatomy.contrast(
                s.expand(3, 1), n.expand(3, -1), torch.tensor([[0.98], [1.0], [1.02]]) * turn["t"]
            )
            assert float(beside[1]) <= float(beside.min()) + 1e-9
            assert_close(turn["W"], torch.sigmoid(beside[1]), "lowest W")
    assert turned > 20


def on_the_circle(angles: list[float], pictures: int) -> tuple[torch.Tensor, torch.Tensor]:
    t = torch.tensor(angles, dtype=torch.float64)
    z = torch.stack([t.cos(), t.sin()], dim=1)
    return z[:pictures], z[pictures:]


def circle_settings(dice: Dice, name: str) -> dict:
    pictures = dice.whole(2, 8)
    state = {"loss": name, "pictures": pictures, "classes": dice.whole(1, min(4, pictures))}
    return state | {"by_labels": dice(0, 1) < 0.5} | plain(dice.settings(name))


OFFERED = [name for name in controls.FAMILY if name not in controls.NEEDS_MORE]


def test_what_moves_points_on_the_circle_is_the_gradient_of_the_loss(kept):
    dice, cases = Dice(1), []
    for k in range(SETTINGS[1]):
        state = circle_settings(dice, OFFERED[k % len(OFFERED)])
        cases.append(state | {"angles": [dice(0, 2 * math.pi) for _ in range(2 * state["pictures"])]})
    shown = """(() => { const found = app.forces("loss", Float64Array.from(state.angles));
        return { value: found.value, pulled: [...found.pulled], pushed: [...found.pushed] }; })()"""
    for state, found in answers(kept("circle"), shown, cases):
        loss, labels = loss_of(state), torch.arange(state["pictures"]) % state["classes"]
        if not state["by_labels"] or state["classes"] == 1 or "labels" not in loss.accepts:
            labels = None
        z1, z2 = on_the_circle(state["angles"], state["pictures"])
        extra = {} if labels is None else {"labels": labels}
        assert_close(found["value"], loss(z1, z2, **extra), f"{state}, value")
        z = torch.cat([z1, z2])
        along = torch.stack([-z[:, 1], z[:, 0]], dim=1)
        parts = [(part.flatten(0, 1) * along).sum(dim=1) for part in sphere.forces(loss, z1, z2, labels)]
        scale = max(float(part.abs().max()) for part in parts)
        assert_close(found["pulled"], parts[0], f"{state}, pull", scale)
        assert_close(found["pushed"], parts[1], f"{state}, push", scale)


@pytest.mark.parametrize("name", ["NTXent", "MACL", "DualTemperature", "PairMargin"])
def test_points_go_where_the_course_moves_them(kept, name):
    dice = Dice(2)
    state = {
        "loss": name,
        "beside": "none",
        "pictures": 6,
        "classes": 3,
        "rate": 0.05,
        "proportional": False,
        "at": "",
    }
    state |= (
        {"by_labels": False}
        | plain({c.name: c.default for c in controls.of_loss(name)})
        | {"seed": dice.whole(0, 99)}
    )
    lane = """(() => {
        app.page.fresh(app, "seed"); app.play(false); const lane = app.lanes[0]; lane.reach(app, 40);
        return { path: lane.path.map((x) => [...x]), seen: lane.seen,
            loss: lane.found.map((x) => x.value) }; })()"""
    ((_, found),) = answers(kept("circle"), lane, [state])
    loss = loss_of(state)
    z1, z2 = on_the_circle(found["path"][0], 6)
    path = sphere.move(loss, z1, z2, steps=40, learning_rate=0.05)
    there = torch.cat([path.z1[-1], path.z2[-1]])
    assert_close(torch.cat(on_the_circle(found["path"][40], 6)), there, "the points after 40 steps")
    assert_close(found["loss"], path.loss, "the loss along the way")
    for step in (0, 40):
        seen, z, y = found["seen"][step], path.z1[step], torch.arange(6) % 3
        assert_close(seen["alignment"], measures.alignment(z, path.z2[step]), "alignment")
        assert_close(seen["uniformity"], measures.uniformity(z), "uniformity")
        assert_close(seen["tolerance"], measures.tolerance(z, y), "tolerance")
        assert_close(seen["gap"], sphere.gaps(z).max(), "widest gap")


def test_each_row_of_the_matrix_is_its_anchors_pairs_shares_and_forces(kept):
    dice, cases = Dice(3), []
    for k in range(SETTINGS[2]):
        name = OFFERED[k % len(OFFERED)]
        state = {
            "loss": name,
            "pictures": dice.whole(2, 5),
            "dimensions": dice.whole(2, 9),
            "seed": dice.whole(0, 99),
        }
        state |= {"learned": dice(0, 1), "classes": dice.whole(1, 3)}
        cases.append(state | plain(dice.settings(name)))
    shown = """(() => { const fine = (x) => (Number.isFinite(x) ? x : null);
        const rows = app.rows().map((r) => ({ ...r, W: fine(r.W), t: fine(r.t) }));
        return { z: app.embeddings(), rows }; })()"""
    for state, found in answers(kept("matrix"), shown, cases):
        loss = loss_of(state)
        z = torch.tensor(found["z"], dtype=torch.float64)
        B, rows = state["pictures"], found["rows"]
        pairs = loss.compare(z[:B], z[B:])
        of = torch.tensor([row["row"] for row in rows], dtype=torch.float64)
        assert_close(of, z @ z.T, "similarities")
        own, others = (
            torch.tensor([row["own"] for row in rows]),
            torch.tensor([row["others"] for row in rows]),
        )
        s, n = of.gather(1, own[:, None]), of.gather(1, others)
        anchors = len(pairs.positives)  # of pairs taken one way: those of view 1
        assert anchors == (B if loss.comparison == "one way" else 2 * B)
        assert_close(s[:anchors], pairs.positives, "positives")
        assert_close(
            n[:anchors].sort().values, pairs.negatives.sort().values, f"negatives of {state['loss']}"
        )
        assert_close(loss.per_anchor(s, n).mean(), loss(z[:B], z[B:]), "the mean over all rows")
        pull, push = anatomy.forces(loss, s, n)
        force = torch.tensor([[v or 0.0 for v in row["force"]] for row in rows], dtype=torch.float64)
        scale = float(push.abs().max())
        assert_close([row["value"] for row in rows], loss.per_anchor(s, n), f"{state}, value")
        assert_close(-force.gather(1, own[:, None]), pull, f"{state}, pull", scale)
        assert_close(force.gather(1, others), push, f"{state}, push")
        for row, positive, negatives in zip(rows, s, n, strict=True):
            if row["t"] and 1e-3 < row["t"] < 1e6:
                W = anatomy.gradient_scale(positive, negatives[None], row["t"])
                shares = torch.softmax(torch.cat([positive, negatives]) / row["t"], dim=0)
                assert_close(row["W"], W[0], "W")
                assert_close(
                    [row["shares"][b] for b in (row["own"], *row["others"])], shares, "shares of the softmax"
                )


@pytest.mark.parametrize("name", ["CLIP", "SigLIP"])
def test_images_by_captions_have_the_losss_value_shares_and_gradient(opening, name):
    dice, cases = Dice(5), []
    for k in range(8):
        where = {"pairs": ("fresh", "trained")[k % 2], "asks": ("images", "captions")[k // 2 % 2]}
        cases.append(where | {"loss": name} | plain(dice.settings(name)))
    shown = "(({ value, cosines, shares, forces }) => ({ value, cosines, shares, forces }))(app.table())"
    with opening("matrix") as page:
        found_in = answers(page, shown, cases)
        tables = page.ask("(app) => app.data.pairs.tables")
        page.ask("(app, given) => app.open(given)", {"pairs": "trained", "loss": name})
        said = page.page.locator(".says").filter(has_text="own sentence (“")  # once the page is drawn
        said.wait_for()
        assert "loss" in said.text_content() and not page.page.locator(".ruler").is_visible()
    for state, found in found_in:
        loss, tau = loss_of(state), state["temperature"]
        s = (torch.tensor(tables[state["pairs"]], dtype=torch.float64) / 1000).requires_grad_()
        B, others = len(s), ~torch.eye(len(s), dtype=torch.bool)
        ways = [loss.per_anchor(of.diag()[:, None], of[others].view(B, B - 1)).mean() for of in (s, s.T)]
        value = (ways[0] + ways[1]) / 2
        value.backward()
        dim = 1 if state["asks"] == "images" else 0
        shares = torch.softmax(s / tau, dim) if name == "CLIP" else torch.sigmoid(s / tau + state["bias"])
        assert_close(found["cosines"], s.detach(), "cosines")
        assert_close(found["value"], value.detach(), f"{state}, loss")
        assert_close(found["shares"], shares.detach(), f"{state}, shares")
        assert_close(found["forces"], s.grad, f"{state}, gradient")


def test_the_ruler_reads_as_the_packages(kept):
    dice, cases, verdicts = Dice(4), [], set()
    for k in range(6 * len(OFFERED)):
        name = OFFERED[k % len(OFFERED)]
        takes = "queue" in losses.catalogue()[name].cls.accepts
        queue = dice.whole(1, 3000) if takes and dice(0, 1) < 0.3 else None
        at = {"batch_size": dice.whole(2, 600), "queue": queue, "positive": dice(-1, 1), "spread": dice(0, 1)}
        given = dice.settings(name) if k % 2 else {c.name: c.default for c in controls.of_loss(name)}
        cases.append({"loss": name, "value": dice(-1, 9) ** 2 / 9, **at, **plain(given)})
    shown = """(() => { const found = app.ruler(), fine = (x) => (Number.isFinite(x) ? x : null);
        return { ...found, trained: { ...found.trained, W: fine(found.trained.W) } }; })()"""
    for state, found in answers(kept("matrix"), shown, cases):
        at = {key: state[key] for key in ("batch_size", "queue", "positive", "spread")}
        marks = anatomy.ruler(loss_of(state), **at)
        assert (found["K"], found["n"]) == (marks.K, marks.n)
        for name in ("chance", "collapsed", "best", "floor"):
            assert (found[name] is None) == (getattr(marks, name) is None), f"{marks.loss}: {name}"
            if found[name] is not None:
                assert_close(found[name], getattr(marks, name), f"{marks.loss}, {name}")
        assert (found["trained"]["W"] is None) == (marks.trained.W is None), marks.loss
        for name in ("value", "pull", "W"):
            expected = getattr(marks.trained, name)
            if expected is not None and found["trained"][name] is not None:
                scale = abs(marks.trained.value)
                assert_close(found["trained"][name], expected, f"{marks.loss}, trained: {name}", scale)
        said = "can't be said" if found["verdict"] == "unknown" else f" is {found['verdict']}: "
        says = marks.says(state["value"])
        assert said in says or " is at chance as " in says  # a value on another's scale: a test of its own
        verdicts.add(found["verdict"])
    assert verdicts >= {"above chance", "learning", "below the floor", "unknown"}


def test_the_ruler_names_the_scale_on_which_others_print_a_loss(kept):
    at = {"loss": "NTXent", "positive": 0.85, "spread": 0.2, "queue": None}
    cases = [
        {**at, "temperature": 0.1, "batch_size": 256, "value": 8.909},
        {**at, "temperature": 1.0, "batch_size": 4096, "value": 33.27},
        {**at, "temperature": 0.1, "batch_size": 256, "value": 9.2},
    ]
    for state, said in answers(kept("matrix"), "app.says()", cases):
        marks = anatomy.ruler(losses.NTXent(state["temperature"]), state["batch_size"])
        for words in ("SupContrast prints it", "MoCo v3 prints it", "above chance"):
            assert (words in said) == (words in marks.says(state["value"])), (words, said)


def test_the_page_compares_itself_with_the_package_and_says_so(kept, opening, written, tmp_path):
    said = kept("W").page.text_content(".source")
    assert f"✓ {len(controls.FAMILY)} losses" in said
    text = (written / "W.html").read_text("utf-8")
    other = text.replace('"pull":[[0.', '"pull":[[1.', 1)
    assert other != text
    (tmp_path / "other.html").write_text(other, "utf-8")
    with opening("W", path=tmp_path / "other.html") as page:
        assert "do not trust the numbers of this page" in page.page.text_content(".source")


def test_every_loss_of_level_similarity_is_there_or_left_out_with_a_reason(kept):
    assert set(kept("W").ask("(app) => Object.keys(app.data.losses)")) == set(controls.FAMILY)
    assert set(controls.FAMILY) | set(controls.NOT_HERE) == set(losses.catalogue())
    for name in ("circle", "matrix"):
        offered = {key for key, _ in kept(name).ask("(app) => app.data.settings[0].options")}
        assert offered | set(controls.NEEDS_MORE) == set(controls.FAMILY)
        said = kept(name).page.text_content(".source")
        assert all(f"{style.title(loss)} {why}" in said for loss, why in controls.NEEDS_MORE.items())
    assert similarities.count(2) == 2
