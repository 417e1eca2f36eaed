"""Deliberate faults, each with the test that catches it: `python -m tests.faults [NAME ...]`.

That all tests pass says little about the tests. So each entry breaks the package in one place, as a slip or a
careless change would, and names a quick test that has to fail then. The command copies the tree into a
temporary folder, sees that all named tests pass there, then puts in one fault at a time, runs its test and
prints a line. Its exit code is 1 where a fault is missed. `tests/test_faults.py` keeps the list up to date.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]


class Fault(NamedTuple):
    """One fault: in this file, which has this text once, the text becomes another, and this test fails."""

    name: str
    file: str
    text: str
    becomes: str
    test: str


FAULTS = (
    # ---- losses
    Fault(
        "the sign of InfoNCE's contrast",
        "clutils/losses/nt_xent.py",
        "softplus(contrast(pairs, self.temperature))",
        "softplus(-contrast(pairs, self.temperature))",
        "tests/losses/test_every_loss.py::test_value_and_gradient_are_those_of_the_equation_as_written",
    ),
    Fault(
        "the sign of the triplet's hinge",
        "clutils/losses/triplet.py",
        "halves = torch.relu(negatives + (self.margin / 2 - positives))",
        "halves = torch.relu(positives + (self.margin / 2 - negatives))",
        "tests/losses/test_every_loss.py::test_value_and_gradient_are_those_of_the_equation_as_written",
    ),
    Fault(
        "the sign of SigLIP's bias",
        "clutils/losses/siglip.py",
        "softplus(-pairs.positives / self.temperature - self.bias)",
        "softplus(-pairs.positives / self.temperature + self.bias)",
        "tests/losses/test_every_loss.py::test_value_and_gradient_are_those_of_the_equation_as_written",
    ),
    Fault(
        "a wrong power of the temperature",
        "clutils/losses/moving_average.py",
        "weighed = temperature * (",
        "weighed = temperature**2 * (",
        "tests/losses/test_sogclr.py::test_at_rate_1_it_is_the_batchs_own_decoupled_loss_times_the_temperature",
    ),
    Fault(
        "embeddings that are not normalised",
        "clutils/losses/base.py",
        "return similarities.normalise_views(views, names, self.name, self.check_inputs)",
        "return tuple(map(similarities.widen, views))",
        "tests/losses/test_every_loss.py"
        "::test_the_length_of_an_embedding_matters_only_where_the_paper_does_not_normalise",
    ),
    Fault(
        "a mask that per_anchor ignores",
        "clutils/losses/base.py",
        "logits = masked(pairs.negatives / temperature, pairs.negative_mask, -torch.inf)",
        "logits = pairs.negatives / temperature",
        "tests/losses/test_every_loss.py"
        "::test_who_is_compared_is_whom_loops_find_and_what_is_masked_counts_for_nothing",
    ),
    Fault(
        "false negatives one row off",
        "clutils/similarities.py",
        "return y[owners(columns, batch)] == y[:, None]",
        "return y[owners(columns, batch)] == y.roll(1)[:, None]",
        "tests/test_similarities.py::test_false_negatives_are_the_negatives_of_the_anchors_own_class",
    ),
    Fault(
        "a gradient through the queue",
        "clutils/similarities.py",
        "return Pairs(positives, z1 @ self.queue.detach().T)",
        "return Pairs(positives, z1 @ self.queue.T)",
        "tests/losses/test_every_loss.py::test_a_queue_gets_no_gradient",
    ),
    Fault(
        "a gradient through MACL's temperature",
        "clutils/losses/macl.py",
        "alignment = torch.as_tensor(alignment).detach()",
        "alignment = torch.as_tensor(alignment)",
        "tests/losses/test_macl.py::test_macls_alignment_is_the_mean_positive_and_gets_no_gradient",
    ),
    Fault(
        "HCL's estimate without its clamp",
        "clutils/losses/debiased.py",
        "return torch.where(left & (estimate > smallest), estimate, smallest)",
        "return torch.where(left, estimate, smallest)",
        "tests/losses/test_every_loss.py::test_value_and_gradient_are_those_of_the_equation_as_written",
    ),
    Fault(
        "NaN let through",
        "clutils/similarities.py",
        "sound = torch.isfinite(largest) & (largest > SHORTEST) & (largest <= most)",
        "sound = ~(largest <= SHORTEST)",
        "tests/losses/test_every_loss.py::test_bad_embeddings_are_named",
    ),
    Fault(
        "a chance level of one negative more",
        "clutils/similarities.py",
        'return 2 * batch - 2 if comparison == "both views" else batch - 1',
        'return 2 * batch - 1 if comparison == "both views" else batch - 1',
        "tests/methods/test_simclr.py::test_chance_is_log_of_2b_minus_1_for_nt_xent_and_each_losss_own_for_others",
    ),
    Fault(
        "a wrong best reachable on the ruler",
        "clutils/anatomy.py",
        "best = at(1, -1 / (n - 1))",
        "best = at(1, -1 / n)",
        "tests/test_ruler.py::test_nt_xents_marks_are_their_closed_forms",
    ),
    # ---- the plain core
    Fault(
        "an image's own view among its negatives",
        "clutils/similarities.py",
        "between = of_these[:, views:].unflatten(1, (images - 1, views * (images + 1)))[:, :, :-views]",
        "between = of_these[:, views:].unflatten(1, (images - 1, views * (images + 1)))[:, :, views:]",
        "tests/test_similarities.py::test_columns_of_negatives_know_whose_they_are",
    ),
    Fault(
        "an anchor among its own positives",
        "clutils/similarities.py",
        "return Pairs(s, s, same.scatter(1, itself[:, None], False), ~same)",
        "return Pairs(s, s, same, ~same)",
        "tests/losses/test_every_loss.py::test_labels_make_positives_of_every_picture_of_the_class",
    ),
    Fault(
        "a temperature that the positive does not feel",
        "clutils/losses/base.py",
        "return log_sum(pairs, temperature) - pairs.positives / temperature",
        "return log_sum(pairs, temperature) - pairs.positives",
        "tests/losses/test_every_loss.py::test_value_and_gradient_are_those_of_the_equation_as_written",
    ),
    Fault(
        "a block's own images looked for one row too early",
        "clutils/similarities.py",
        "before, behind = views * start, views * (start + images)",
        "before, behind = views * max(0, start - 1), views * (max(0, start - 1) + images)",
        "tests/losses/test_blocks.py::test_every_loss_in_blocks_is_its_formula_on_who_is_compared",
    ),
    Fault(
        "a block that keeps the draws of the first images",
        "clutils/similarities.py",
        "drawn = [d.unflatten(0, (-1, images))[:, part].flatten(0, 1) for d in self.drawn]",
        "drawn = [d.unflatten(0, (-1, images))[:, : stop - start].flatten(0, 1) for d in self.drawn]",
        "tests/losses/test_blocks.py::test_every_loss_in_blocks_is_its_formula_on_who_is_compared",
    ),
    Fault(
        "a block's gradient at the temperature of a later call",
        "clutils/losses/base.py",
        "now = copy.copy(self)",
        "now = self",
        "tests/losses/test_blocks.py"
        "::test_a_temperature_set_between_two_calls_is_that_of_the_next_and_of_no_gradient_before",
    ),
    # ---- methods
    Fault(
        "a momentum update before the loss",
        "clutils/methods/byol.py",
        "t1, t2 = (self.target(view) for view in both)",
        "self.after_step(); t1, t2 = (self.target(view) for view in both)",
        "tests/methods/test_every_method.py"
        "::test_a_step_is_its_papers_equation_on_what_the_networks_make_of_the_views",
    ),
    Fault(
        "keys that enter the queue before the loss",
        "clutils/methods/moco.py",
        "self.entering = normalize(keys, dim=1)",
        "self.entering = normalize(keys, dim=1); self.queue[: len(keys)] = self.entering",
        "tests/methods/test_moco.py::test_the_loss_is_against_the_queue_as_it_was_before_the_steps_own_keys",
    ),
    Fault(
        "SimSiam without its stop-gradient",
        "clutils/methods/simsiam.py",
        "z1, z2 = z1.detach(), z2.detach()",
        "pass",
        "tests/methods/test_simsiam.py"
        "::test_loss_and_gradient_are_the_papers_with_the_embeddings_held_fixed_or_not",
    ),
    Fault(
        "BYOL without its target",
        "clutils/methods/byol.py",
        "t1, t2 = (self.target(view) for view in both)",
        "t1, t2 = (self.head(self.features_of(view)) for view in both)",
        "tests/methods/test_every_method.py"
        "::test_a_step_is_its_papers_equation_on_what_the_networks_make_of_the_views",
    ),
    Fault(
        "PiNDA's noise not added",
        "clutils/methods/pinda.py",
        "noisy = x + self.sample",
        "noisy = x",
        "tests/methods/test_pinda.py"
        "::test_without_augmentations_the_views_are_the_picture_with_noise_and_the_picture",
    ),
    Fault(
        "PiNDA without its penalty",
        "clutils/methods/pinda.py",
        "return loss + term, z1, z2",
        "return loss, z1, z2",
        "tests/methods/test_pinda.py"
        "::test_the_gradient_in_a_weight_of_the_generator_is_that_of_finite_differences",
    ),
    Fault(
        "weight decay on PiNDA's generator",
        "clutils/methods/pinda.py",
        '"factor": self.noise_rate, "weight_decay": 0.0}',
        '"factor": self.noise_rate}',
        "tests/methods/test_pinda.py::test_the_generator_has_a_rate_of_its_own_and_no_weight_decay",
    ),
    Fault(
        "one view for both sides",
        "clutils/methods/base.py",
        "return list(augment(torch.cat([images] * number), generator=generator).chunk(number))",
        "return [augment(images, generator=generator)] * number",
        "tests/methods/test_simclr.py::test_the_simclr_step_is_two_views_one_encoder_one_head_and_the_loss",
    ),
    # ---- views and data
    Fault(
        "the same draw for both views of a vector",
        "clutils/views/vectors.py",
        "views = [self(x, generator) for _ in range(number)]",
        "views = [self(x, generator)] * number",
        "tests/views/test_vectors.py::test_the_paper_corrupts_one_view_alone",
    ),
    Fault(
        "a crop that is always in the middle",
        "clutils/views/__init__.py",
        "top, left = (u[:, 20] * (height - tall + 1)).floor()",
        "top, left = (0.5 * (height - tall + 1)).floor()",
        "tests/views/test_augmentation.py::test_crop_boxes_are_distributed_unlike_torchvisions",
    ),
    Fault(
        "a graph that keeps the nodes it should drop",
        "clutils/views/graphs.py",
        "nodes & ~_first(u, nodes, _of(nodes, share))",
        "nodes & _first(u, nodes, _of(nodes, share))",
        "tests/views/test_graphs.py"
        "::test_each_graph_loses_its_share_of_nodes_with_their_edges_and_nothing_else",
    ),
    Fault(
        "dropout of what should stay",
        "clutils/encoders/transformer.py",
        ">= self.p",
        "< self.p",
        "tests/test_encoders.py::test_dropout_leaves_out_its_share_and_keeps_the_mean",
    ),
    Fault(
        "an edge list's first two columns for its ends",
        "clutils/data/own_graphs.py",
        "return pairs[0]",
        "return 0, 1",
        "tests/data/test_graphs.py::test_the_two_columns_that_a_heading_calls_ends_are_the_ends_and_others_are_said",
    ),
    Fault(
        "one tiny image decides the size of all",
        "clutils/data/folders.py",
        "robust = sides[max(1, len(sides) // 20)] if len(sides) > 2 else sides[0]",
        "robust = sides[0]",
        "tests/data/test_folders.py::test_one_tiny_thin_or_huge_image_does_not_decide_the_size_of_all",
    ),
    Fault(
        "names of classes numbered in each part alone",
        "clutils/measures.py",
        "    (train_y, test_y), _ = numbered(who, train_y, test_y)\n",
        "",
        "tests/test_measures.py::test_names_are_numbered_alike_in_both_parts_and_not_mixed_with_numbers",
    ),
    Fault(
        "test images among the training images",
        "clutils/data/digits.py",
        'np.flatnonzero(is_test == (split == "test"))',
        'np.flatnonzero(is_test | (split == "train"))',
        "tests/data/test_sets.py::test_digits_are_scikit_learns_each_once_in_one_of_two_parts",
    ),
    # ---- measures
    Fault(
        "a neighbour that is the query itself",
        "clutils/measures.py",
        "similar.diagonal(start).fill_(-torch.inf)",
        "pass",
        "tests/test_measures.py::test_neighbour_overlap_is_counted_by_loops_and_ignores_scale",
    ),
    Fault(
        "a baseline of fresh weights by settled batch statistics alone",
        "clutils/report/examination.py",
        "    fresh += [way.settled(some.images[:LEARNED]) for way in fresh if _has_statistics(way)]\n",
        "    fresh = [way.settled(some.images[:LEARNED]) for way in fresh if _has_statistics(way)]\n",
        "tests/report/test_screen.py"
        "::test_fresh_weights_are_the_better_of_as_made_and_with_settled_statistics",
    ),
    Fault(
        "uniformity with the diagonal",
        "clutils/measures.py",
        "exponents.diagonal().fill_(-torch.inf)",
        "pass",
        "tests/test_measures.py::test_uniformity_is_the_log_of_the_mean_potential_of_all_pairs",
    ),
    Fault(
        "uniformity in the history of one view alone",
        "clutils/training/step.py",
        "(measures.log_potential(z1) + measures.log_potential(z2)) / 2",
        "measures.log_potential(z1)",
        "tests/training/test_run.py::test_the_history_holds_what_the_measures_say_of_the_batch_it_saw",
    ),
    Fault(
        "a probe that is fitted on the test labels",
        "clutils/measures.py",
        'found = probed(train_z, train_y, test_z, "linear_probe")',
        'found = probed(test_z, test_y, test_z, "linear_probe")',
        "tests/test_measures.py"
        "::test_the_probe_is_logistic_regression_on_features_standardised_by_the_training_rows",
    ),
    Fault(
        "few labels drawn with replacement",
        "clutils/measures.py",
        "replace=False",
        "replace=True",
        "tests/test_measures.py::test_a_draw_of_few_labels_has_no_row_twice",
    ),
    Fault(
        "a verdict of the report turned round",
        "clutils/report/diagnosis.py",
        "    return by is not None and max(by) >= CERTAIN",
        "    return by is not None and max(by) <= CERTAIN",
        "tests/report/test_diagnosis.py::test_one_sentence_with_the_numbers_it_rests_on",
    ),
    # ---- training
    Fault(
        "a resume that forgets the optimiser",
        "clutils/training/__init__.py",
        'run.optimiser.load_state_dict(state["optimiser"])',
        "pass",
        "tests/training/test_checkpoint.py::test_four_steps_saved_and_three_more_are_seven_steps_to_the_bit",
    ),
    Fault(
        "a resume that goes on with other labels",
        "clutils/training/checkpoint.py",
        "None if run.labels is None else _checksum(run.labels)",
        "None",
        "tests/training/test_checkpoint.py::test_one_other_picture_label_or_class_name_is_refused",
    ),
    Fault(
        "a resume that forgets the random numbers",
        "clutils/training/around.py",
        'loss.generator = run.stream("mixes", run.device)',
        "pass",
        "tests/training/test_checkpoint.py::test_four_steps_saved_and_three_more_are_seven_steps_to_the_bit",
    ),
    Fault(
        "a resume that forgets the queue",
        "clutils/methods/queue.py",
        'self.register_buffer("queue", normalize(torch.randn(self.queue_size, self.out), dim=1))',
        'self.register_buffer("queue", normalize(torch.randn(self.queue_size, self.out), dim=1), False)',
        "tests/methods/test_moco.py::test_a_step_keeps_no_copy_of_the_queue_and_state_dict_holds_all_of_it",
    ),
    Fault(
        "a state per sample that old runs do not get back",
        "clutils/losses/sogclr.py",
        'return {"log_average": -math.inf}',
        'return {"averages": -math.inf}',
        "tests/training/test_written_before.py"
        "::test_its_checkpoint_goes_on_as_the_code_that_wrote_it_did[sogclr]",
    ),
    Fault(
        "the same views at every step",
        "clutils/training/state.py",
        "number = self.steps_done if number is None else number",
        "number = 0",
        "tests/training/test_run.py::test_every_step_draws_its_own_views",
    ),
    Fault(
        "a learning rate one step late",
        "clutils/training/state.py",
        "return rate * (self.steps_done + 1) / rising",
        "return rate * self.steps_done / rising",
        "tests/training/test_run.py"
        "::test_the_learning_rate_rises_over_a_twentieth_and_falls_as_half_a_cosine",
    ),
    # ---- files
    Fault(
        "a hostile pickle let in",
        "clutils/training/checkpoint.py",
        "weights_only=True",
        "weights_only=False",
        "tests/checkpoints/test_reading.py::test_full_unpickling_is_nowhere_in_the_package",
    ),
    Fault(
        "a function on the list of harmless names",
        "clutils/checkpoints/reading.py",
        '    "typing.Any",',
        '    "typing.Any", "os.system",',
        "tests/checkpoints/test_reading.py"
        "::test_a_hostile_file_is_refused_in_one_line_and_nothing_in_it_runs",
    ),
    Fault(
        "a damaged checkpoint read",
        "clutils/checkpoints/reading.py",
        "damaged = archive.testzip()",
        "damaged = None",
        "tests/training/test_checkpoint.py::test_a_damaged_or_foreign_file_is_one_clear_line",
    ),
    Fault(
        "an archive whose names lead out of it",
        "clutils/checkpoints/reading.py",
        'or ".." in Path(name.replace("\\\\", "/")).parts',
        "",
        "tests/checkpoints/test_reading.py"
        "::test_a_hostile_file_is_refused_in_one_line_and_nothing_in_it_runs",
    ),
    Fault(
        "a run's name that leads elsewhere",
        "clutils/training/saved.py",
        r're.fullmatch(r"[\w.=+, -]+", name)',
        r're.fullmatch(r"[\w.=+, /-]+", name)',
        "tests/training/test_saved.py::test_a_name_that_leads_elsewhere_is_refused",
    ),
    Fault(
        "a file written where the old one lies",
        "clutils/files.py",
        '        with open(beside, "wb") as file:',
        '        with open(path, "wb") as file: file.write(content)\n'
        '        with open(beside, "wb") as file:',
        "tests/training/test_survival.py"
        "::test_a_disk_that_fills_up_is_one_line_and_code_1_and_the_last_checkpoint_stays",
    ),
    Fault(
        "markup of a checkpoint's names in the report",
        "clutils/report/page.py",
        "autoescape=True",
        "autoescape=False",
        "tests/report/test_page.py::test_names_from_a_file_can_not_write_into_the_page",
    ),
    # ---- walls and the course
    Fault(
        "a room that imports upwards",
        "clutils/similarities.py",
        "    return x if x.dtype == torch.float64 else x.float()",
        "    from clutils import measures as _\n    return x if x.dtype == torch.float64 else x.float()",
        "tests/test_wall.py::test_no_arrow_turns",
    ),
    Fault(
        "widgets in the library",
        "clutils/explorers/replay.py",
        "import math",
        "import math\nimport ipywidgets as _",
        "tests/test_wall.py::test_only_the_course_knows_widgets",
    ),
    Fault(
        "a figure without alt text",
        "clutils/figures/training.py",
        "return describe(ax, f\"{ylabel} against {xlabel}. {'; '.join(phrases)}.\")",
        "return ax",
        "tests/course/pinda/test_figures.py::test_curves_are_the_numbers_given",
    ),
    Fault(
        "alt text that nobody asks for",
        "clutils/figures/__init__.py",
        "    if not text:",
        "    if False:",
        "tests/figures/test_figure.py::test_show_refuses_a_figure_that_nobody_described",
    ),
    Fault(
        "a slider that changes nothing",
        "clutils/course/forces/panels.py",
        "setattr(first, name, None if value == NONE else value)",
        "pass",
        "tests/course/test_forces.py"
        "::test_every_hyperparameter_has_a_slider_labelled_by_its_symbol_that_turns_it[NTXent]",
    ),
    Fault(
        "a notebook with what a run left there",
        "notebooks/04_macl.ipynb",
        '"id": "4202317b",',
        '"id": "4202317b", "execution_count": 7,',
        "tests/course/test_notebooks.py::test_a_notebook_keeps_the_rules",
    ),
    Fault(
        "an exercise that takes a wrong answer",
        "clutils/course/exercise.py",
        "near = (g.double() - e).abs() <= self.tolerance * e.abs().clamp(min=1)",
        "near = (g.double() - e).abs() <= 1 + self.tolerance * e.abs().clamp(min=1)",
        "tests/course/test_exercise.py::test_every_known_wrong_answer_is_rejected_by_name",
    ),
    Fault(
        "a check of an equation that lets NaN pass",
        "clutils/course/check.py",
        "if not gap <= allowed:",
        "if gap > allowed:",
        "tests/course/test_check.py::test_equal_raises_on_a_wrong_equation",
    ),
)


def copied(folder: Path) -> None:
    """The tree as it stands, without what git ignores."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


def pytest(folder: Path, *tests: str) -> tuple[int, str]:
    """The exit code of these tests in a copy of the tree (1: some failed), and what was printed."""
    paths = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-n", "0", *tests]
    ended = subprocess.run(command, cwd=folder, env=paths, capture_output=True, text=True)
    return ended.returncode, ended.stdout + ended.stderr


def caught(fault: Fault, folder: Path) -> bool:
    """Whether its test fails in this copy of the tree, which is left as it was."""
    file = folder / fault.file
    whole = file.read_text("utf-8")
    file.write_text(whole.replace(fault.text, fault.becomes), "utf-8")
    try:
        code, printed = pytest(folder, fault.test)
    finally:
        file.write_text(whole, "utf-8")
    if code not in (0, 1):
        raise SystemExit(f"{fault.name}: {fault.test} did not run:\n{printed}")
    return code == 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="faults by name; default: all")
    names = parser.parse_args().names
    if unknown := set(names) - {fault.name for fault in FAULTS}:
        parser.error(f"there is no fault {unknown.pop()!r}: {', '.join(fault.name for fault in FAULTS)}")
    chosen = [fault for fault in FAULTS if fault.name in names or not names]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        copied(folder)
        code, printed = pytest(folder, *dict.fromkeys(fault.test for fault in chosen))
        if code:
            print(f"without any fault a named test does not pass:\n{printed}")
            return 1
        print("without a fault all named tests pass", flush=True)
        missed = 0
        for fault in chosen:
            found = caught(fault, folder)
            missed += not found
            said = "caught:" if found else "MISSED, its test still passes:"
            print(said, fault.name, fault.test, flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} faults are caught")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
