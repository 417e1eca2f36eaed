"""Numbers of AttentionNCE's tables: the paper's, not ours."""

from clutils.course import records

DATA_SETS = ("CIFAR-10", "STL-10", "CIFAR-100", "Tiny-ImageNet")
SETTINGS = {
    "CIFAR-10": (1.0, 1.0),
    "STL-10": (2.0, 0.5),
    "CIFAR-100": (1.0, 10.0),
    "Tiny-ImageNet": (4.0, 1.0),
}
"""Table 5: d_pos and d_neg; for all of them M = 4, N = 510, τ = 0.5, batches of 256."""

_ROWS = records.of_paper(__file__, "table_1")
TABLE_1 = {name: tuple(zip(row[::2], row[1::2], strict=True)) for name, row in _ROWS.items()}
"""Method -> for each of DATA_SETS its top-1 (%) after 200 and 400 epochs."""

TABLE_1_GAINS = ((3.2, 2.0), (8.6, 7.2), (5.8, 3.8), (5.0, 5.2))
"""Its last line as printed: AttentionNCE less SimCLR."""

TABLE_3 = {"CIFAR-10": (92.2, 92.5, 92.8, 93.1, 93.0, 93.2), "STL-10": (85.4, 86.5, 87.8, 89.4, 89.5, 89.4)}
"""Top-1 (%) for M = 1 to 6."""

TABLE_4 = {
    "CIFAR-10": ((93.1, 93.6), (93.9, 94.2)),
    "CIFAR-100": ((64.6, 68.6), (73.3, 73.4)),
    "Tiny-ImageNet": ((52.7, 54.4), (58.9, 60.2)),
}
"""With labels: SimCLR, then AttentionNCE, after 200 and 400 epochs."""
