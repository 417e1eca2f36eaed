"""SimCLR (Chen et al. 2020, arXiv 2002.05709) in one file: an encoder learns from images without labels.

    python notebooks/simclr.py                              CIFAR-10, downloaded if there is a network
    python notebooks/simclr.py DATA=my_images STEPS=1000    a folder of images; other settings likewise

It needs torch and torchvision alone. In a step of the training, a batch of images goes through three stages,
and the optimiser then moves the weights:
1. Each image is changed twice at random. The results are the image's two views.
2. The encoder, and a small network behind it (the head), turn each view into a vector.
3. The loss asks for each view: which of the others is of the same image? It pulls the vectors of one image's
   two views together, and pushes those of different images apart.

Then the head is thrown away (`python -m clutils check simclr.pt` looks at both). Labels serve the evaluation
alone: a test image gets the class that its nearest training images vote for, by the cosines of features.
kNN accuracy with the settings below and SEED 0, 1, 2:        before training        after 200 steps
    generated images (chance 0.25), on a CPU                  0.501, 0.479, 0.546    0.895, 0.874, 0.849
    JPEG copies of CIFAR-10 (chance 0.1), on a CPU            0.402, 0.408, 0.426    0.477, 0.466, 0.463
"""

import math
import sys
from collections.abc import Iterable, Iterator

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset
from torchvision import datasets, models
from torchvision.transforms import v2

DATA = "cifar10"  # or "generated", or a folder with images in train/CLASS/ and test/CLASS/
NETWORK = "small"  # four convolutions, for a CPU; or "resnet18" and larger ones, for a GPU
SIZE = 32  # height and width of a view in pixels
BATCH = 128  # images a step
STEPS = 200
LEARNING_RATE = 0.005  # the highest: it rises during the first 5 % of the steps, then falls along a cosine
WEIGHT_DECAY = 1e-4
TEMPERATURE = 0.2  # of the loss: the lower it is, the more the nearest wrong views count
NEIGHBOURS = 20  # training images that vote on the class of a test image
SEED = 0
WORKERS = 2  # processes that make the views
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
OUT = "simclr.pt"  # the checkpoint that is written, over one that is there
SETTINGS = [name for name in list(globals()) if name.isupper()]
LEAST = {"SIZE": 16, "BATCH": 2, "TEMPERATURE": 1e-3, "NEIGHBOURS": 1}  # 0 of other numbers


def load() -> list[tuple[Tensor, Tensor]]:
    """Images (N, 3, SIZE, SIZE) uint8 and their classes (N,): of the training part, and of the test part."""
    square = v2.Compose([v2.PILToTensor(), v2.Resize(SIZE), v2.CenterCrop(SIZE)])
    parts = []
    if DATA == "cifar10":
        try:
            parts = [datasets.CIFAR10("data", part, square, download=True) for part in (True, False)]
        except (OSError, RuntimeError) as error:
            print(f"CIFAR-10 could not be downloaded ({error}). Using generated images instead")
    elif DATA != "generated":
        parts = [datasets.ImageFolder(f"{DATA}/{part}", square) for part in ("train", "test")]
    if not parts:
        return [generated(4000, seed=0), generated(1000, seed=1)]
    if parts[0].classes != parts[1].classes:
        sys.exit(f"train/ has the classes {parts[0].classes}, but test/ has {parts[1].classes}")
    return [(torch.stack([image for image, _ in part]), torch.tensor(part.targets)) for part in parts]


def generated(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Images of four textures in two random colours each: the texture is the class, colours say nothing."""
    draw = torch.Generator().manual_seed(seed)
    labels = torch.randint(4, (count,), generator=draw)
    waves, left, top = torch.rand(3, count, 1, 1, generator=draw)
    waves = 2 * math.pi * (2 + 3 * waves)  # two to five in an image
    y, x = torch.meshgrid(torch.linspace(0, 1, SIZE), torch.linspace(0, 1, SIZE), indexing="ij")
    rows, columns = torch.sin(waves * (y + top)), torch.sin(waves * (x + left))
    rings = torch.sin(waves * ((y - top).square() + (x - left).square()).sqrt())
    textures = torch.stack([rows, columns, rows * columns, rings])[labels, torch.arange(count)]
    one, other = torch.rand(2, count, 3, 1, 1, generator=draw)
    images = one + (other - one) * (textures[:, None] + 1) / 2
    images += 0.05 * torch.randn(images.shape, generator=draw)
    return (255 * images).clamp(0, 255).to(torch.uint8), labels


class TwoViews(Dataset):
    """Two views of each image, (3, SIZE, SIZE) in [0, 1]; each has random draws of its own."""

    def __init__(self, images: Tensor) -> None:
        self.images = images
        crop, flip = v2.RandomResizedCrop(SIZE, scale=(0.2, 1.0), antialias=True), v2.RandomHorizontalFlip()
        colour = v2.RandomApply([v2.ColorJitter(0.4, 0.4, 0.4, 0.1)], p=0.8)
        to_float = v2.ToDtype(torch.float32, scale=True)
        self.augment = v2.Compose([crop, flip, colour, v2.RandomGrayscale(0.2), to_float])

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.augment(self.images[index]), self.augment(self.images[index])


def batches(images: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Two views (BATCH, 3, SIZE, SIZE) each of random images: epoch after epoch, without end."""
    size = min(BATCH, len(images))
    while True:
        yield from DataLoader(TwoViews(images), size, shuffle=True, drop_last=True, num_workers=WORKERS)


def make_networks() -> tuple[nn.Module, nn.Module]:
    """The encoder, images (N, 3, H, W) -> features (N, D); and the head, features -> vectors (N, 128)."""
    if NETWORK == "small":
        layers, width = [], 128
        for before, after in ((3, 16), (16, 32), (32, 64), (64, width)):
            layers += [nn.Conv2d(before, after, kernel_size=3, padding=1, bias=False)]
            layers += [nn.MaxPool2d(2) if after < width else nn.Identity(), nn.BatchNorm2d(after), nn.ReLU()]
        encoder = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    else:  # made for large images: for small ones its first layers must not shrink them
        encoder = models.get_model(NETWORK)
        encoder.conv1 = nn.Conv2d(3, 64, kernel_size=3, padding=1, bias=False)
        width, encoder.maxpool, encoder.fc = encoder.fc.in_features, nn.Identity(), nn.Identity()
    hidden = [nn.Linear(width, width, bias=False), nn.BatchNorm1d(width), nn.ReLU()]
    return encoder.to(DEVICE), nn.Sequential(*hidden, nn.Linear(width, 128)).to(DEVICE)


def nt_xent(z1: Tensor, z2: Tensor) -> Tensor:
    """The loss, a scalar. z1, z2: (B, D), row i of both from the same image.

    Each view has to find the other view of its image among all 2B - 1 others, by cosine similarities over
    the temperature: a classification. If all of them are equal, the loss is log(2B - 1).
    """
    z = nn.functional.normalize(torch.cat([z1, z2]))  # (2B, D), rows of length 1
    logits = (z @ z.T / TEMPERATURE).fill_diagonal_(-torch.inf)  # (2B, 2B); -inf: no view is its own answer
    other_view = torch.arange(len(z), device=z.device).roll(len(z1))  # of row i: row i + B, or i - B
    return nn.functional.cross_entropy(logits, other_view)


def learning_rate(step: int) -> float:
    """The learning rate of a step, counted from 0."""
    rising = max(1, round(0.05 * STEPS))
    falling = (1 + math.cos(math.pi * (step - rising) / max(1, STEPS - rising))) / 2
    return LEARNING_RATE * ((step + 1) / rising if step < rising else falling)


def train(encoder: nn.Module, head: nn.Module, views: Iterable[tuple[Tensor, Tensor]]) -> list[float]:
    """STEPS steps, each on two views of a batch of images; returns the losses."""
    weights = [*encoder.parameters(), *head.parameters()]
    optimiser, losses = torch.optim.AdamW(weights, weight_decay=WEIGHT_DECAY), []
    encoder.train()
    for step, (view_1, view_2) in zip(range(1, STEPS + 1), views, strict=False):
        z1, z2 = head(encoder(torch.cat([view_1, view_2]).to(DEVICE))).chunk(2)
        loss = nt_xent(z1, z2)
        optimiser.zero_grad()
        loss.backward()
        optimiser.param_groups[0]["lr"] = learning_rate(step - 1)
        optimiser.step()
        losses.append(loss.item())
        if step % 50 == 0 or step == STEPS:
            print(f"step {step} of {STEPS}: loss {loss:.3f}, chance {math.log(2 * len(z1) - 1):.3f}")
    return losses


@torch.no_grad()
def features(encoder: nn.Module, images: Tensor) -> Tensor:
    """Features of images (N, 3, H, W) uint8, before the head: (N, D)."""
    encoder.eval()
    return torch.cat([encoder(part.to(DEVICE) / 255).cpu() for part in images.split(500)])


def knn_accuracy(train_z: Tensor, train_y: Tensor, test_z: Tensor, test_y: Tensor) -> float:
    """Share of the test images whose class the nearest training images vote for (Wu et al. 2018, 3.4)."""
    train_z, test_z, right = nn.functional.normalize(train_z), nn.functional.normalize(test_z), 0
    for z, y in zip(test_z.split(500), test_y.split(500), strict=True):
        similarity, nearest = (z @ train_z.T).topk(min(NEIGHBOURS, len(train_z)))
        votes = torch.zeros(len(z), int(train_y.max()) + 1)
        votes.scatter_add_(1, train_y[nearest], (similarity / 0.1).exp())
        right += int((votes.argmax(dim=1) == y).sum())
    return right / len(test_y)


def main() -> None:
    for name, _, text in (argument.partition("=") for argument in sys.argv[1:]):
        if name not in SETTINGS:
            sys.exit(f"there is no setting {name!r}; there are {', '.join(SETTINGS)}")
        value = globals()[name] = type(globals()[name])(text)
        if not isinstance(value, str) and not LEAST.get(name, 0) <= value < math.inf:
            sys.exit(f"{name} is {text}, but must be a number from {LEAST.get(name, 0)} on")
    torch.manual_seed(SEED)
    (images, labels), (test_images, test_labels) = load()
    encoder, head = make_networks()
    open(OUT, "ab").close()  # an error where nothing can be written, before the training
    for when in ("before", "after"):
        if when == "after":
            train(encoder, head, batches(images))
        found = features(encoder, images), labels, features(encoder, test_images), test_labels
        print(f"kNN accuracy {when} training: {knn_accuracy(*found):.3f}", flush=True)
    if NETWORK == "small":  # it is the package's conv16, whose layers have these names
        parts = {"convolutions": encoder[0:16:4], "normalisations": encoder[2:16:4]}
        encoder = nn.ModuleDict({name: nn.ModuleList(layers) for name, layers in parts.items()})
    torch.save({"encoder": encoder.state_dict(), "head": head.state_dict(), "temperature": TEMPERATURE}, OUT)


if __name__ == "__main__":
    sys.tracebacklimit = 0  # a wrong setting is one line; 9 shows where in a file of your own an error arose
    main()
