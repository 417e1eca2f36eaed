"""The triplet loss: no table of all triples, and which negatives are semi-hard."""

import torch

from clutils import anatomy, losses
from tests.losses.inputs import embeddings


def test_a_triplet_batch_with_labels_holds_no_table_of_all_triples():
    z1, z2 = embeddings(300, 16, dtype=torch.float32)
    labels = torch.arange(300) % 10
    z1.requires_grad_()
    with torch.profiler.profile(profile_memory=True) as profiled:
        losses.Triplet(0.3)(z1, z2, labels=labels).backward()
    largest = max(event.self_cpu_memory_usage for event in profiled.events())
    assert largest < 50 * (600 * 600 * 4), "more than some tables of all pairs"


def test_a_negative_nearer_than_the_positive_or_as_near_is_none_of_the_semi_hard():
    s, n = torch.tensor([[0.5]]), torch.tensor([[0.9, 0.5, 0.45]])
    pull, push = anatomy.forces(losses.Triplet(0.2, semi_hard=True), s, n)
    assert push.tolist() == [[0, 0, 2]] and pull.tolist() == [[2]]
    pull, push = anatomy.forces(losses.Triplet(0.2, semi_hard=True), s, n[:, :2])
    assert float(pull) == 0 and push.tolist() == [[0, 0]]  # TensorFlow's would push 0.5, the farthest
    hardest = anatomy.forces(losses.Triplet(0.2, batch_hard=True), s, n)[1]
    assert hardest.tolist() == [[2, 0, 0]]
