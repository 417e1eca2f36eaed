"""Probes of shape and texture on the features of SupCon and SimCLR: what is lost that no label said.

    python benchmarks/transfer.py [--seeds 0 1 2] [--record]

SupCon is told the texture, or (its upper control) the shape; SimCLR is told nothing; before the first step
each encoder has fresh weights. Same first weights, images, augmentations and steps for a seed. Of each look
a row: the probe of texture and shape, behind the encoder and behind its head. Rows on record are left out.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import torch

from clutils import data, losses, measures, training
from clutils.course import records
from clutils.course.images_and_sentences.captions import facts
from clutils.data.scenes import SHAPES

RECORD, STEPS, LOOKS = "transfer", 600, (0, 200, 400, 600)
TOLD = {"SimCLR": None, "SupCon, told the texture": "texture", "SupCon, told the shape": "shape"}


def by_shape(scenes: data.ImageSet) -> data.ImageSet:
    """The same scenes with their shapes as labels."""
    numbers = facts(scenes)["shape"].map({name: number for number, name in enumerate(SHAPES)})
    return replace(scenes, labels=torch.tensor(numbers.to_numpy()), class_names=tuple(SHAPES))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    texture = data.load("scenes", limit=4000), data.load("scenes", "test", limit=1500)
    sets = {"texture": texture, "shape": tuple(by_shape(each) for each in texture)}
    for seed in options.seeds:
        for name, told in TOLD.items():
            if options.record and (name, seed) in records.known(RECORD, "contender", "seed"):
                continue
            method = {"method": "supcon", "loss": losses.SupCon(0.1)} if told else {"method": "simclr"}
            train = sets[told or "texture"][0]
            run = training.Run(
                data=train, steps=STEPS, batch_size=128, seed=seed, precision="float32", **method
            )
            for look in LOOKS:
                while run.steps_done < look:
                    run.step()
                row = {"command": "python benchmarks/transfer.py --record", "contender": name, "seed": seed}
                row |= {"steps": STEPS, "step": look, "images": len(train), "test_images": len(texture[1])}
                for asked, (seen, unseen) in sets.items():
                    for where, of in (("encoder", run.embed), ("head", run.project)):
                        probe = measures.linear_probe(of(seen), seen.labels, of(unseen), unseen.labels)
                        row[f"{asked}_{where}"] = probe
                records.keep(RECORD, row, options.record)


if __name__ == "__main__":
    main()
