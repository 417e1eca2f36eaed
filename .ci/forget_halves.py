"""Take packages that a cut-short set-up left half installed off pip's list, so that pip installs them again.

PyTorch unpacks gigabytes: a Ctrl-C or a full disk in the middle leaves a folder that pip takes for installed.
"""

import csv
import shutil
import sysconfig
from pathlib import Path

packages = Path(sysconfig.get_path("purelib"))


def is_whole(info):
    """Whether all that its RECORD lists is there; pip writes INSTALLER after all other files."""
    record = info / "RECORD"
    if not record.exists() or not (info / "INSTALLER").exists():
        return False
    with record.open(newline="") as rows:
        names = [row[0] for row in csv.reader(rows) if row]
    return all(name.endswith(".pyc") or (packages / name).exists() for name in names)


for info in packages.glob("*.dist-info"):
    if not is_whole(info):
        print(f"{info.name.partition('-')[0]} was cut short: installing it again")
        shutil.rmtree(info)
for remains in packages.glob("~*"):  # so pip calls what it is about to remove
    shutil.rmtree(remains) if remains.is_dir() else remains.unlink()
