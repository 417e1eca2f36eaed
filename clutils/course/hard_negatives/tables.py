"""Numbers of SSCL's tables (arXiv 2304.02971): linear evaluation, top-1 in per cent on each of DATA_SETS."""

from clutils.course import records

DATA_SETS = ("CIFAR-10", "CIFAR-100", "TinyImageNet")
TABLE_3, TABLE_4 = (records.of_paper(__file__, f"table_{number}") for number in (3, 4))
