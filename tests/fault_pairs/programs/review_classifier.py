"""Sentiment classifier for short reviews (self-attention encoder, whitespace tokens)."""
import random

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

torch.set_num_threads(1)
torch.manual_seed(0)

PAD = 0
MAX_LEN = 256
WORDS = 3000


class Reviews(Dataset):
    """Each review is a list of word ids; low ids are positive words, high ids negative."""

    def __init__(self, count, seed):
        rng = random.Random(seed)
        self.items = []
        for _ in range(count):
            label = rng.randrange(2)
            length = min(MAX_LEN, max(5, int(rng.lognormvariate(3.2, 0.5))))
            centre = 1200 if label == 0 else 1800
            ids = [min(WORDS - 1, max(1, int(rng.gauss(centre, 500)))) for _ in range(length)]
            self.items.append((ids, label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def pad_batch(items):
    ids = [torch.tensor(seq[:MAX_LEN]) for seq, _ in items]
    labels = torch.tensor([label for _, label in items])
    width = MAX_LEN  # the problem
    tokens = torch.full((len(ids), width), PAD, dtype=torch.long)
    for row, seq in zip(tokens, ids):
        row[: len(seq)] = seq
    return tokens, labels


class Classifier(nn.Module):
    def __init__(self, dim=64, heads=4):
        super().__init__()
        self.embed = nn.Embedding(WORDS, dim, padding_idx=PAD)
        self.pos = nn.Parameter(torch.zeros(1, MAX_LEN, dim))
        layer = nn.TransformerEncoderLayer(dim, heads, 128, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(dim, 2)

    def forward(self, tokens):
        padding = tokens.eq(PAD)
        h = self.embed(tokens) + self.pos[:, : tokens.size(1)]
        h = self.encoder(h, src_key_padding_mask=padding)
        keep = (~padding).unsqueeze(-1).float()
        return self.out((h * keep).sum(1) / keep.sum(1))


def main():
    train = DataLoader(Reviews(720, 1), batch_size=16, collate_fn=pad_batch)
    test = DataLoader(Reviews(160, 2), batch_size=16, collate_fn=pad_batch)
    model = Classifier()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    total = 0.0
    for tokens, labels in train:
        loss = nn.functional.cross_entropy(model(tokens), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    model.eval()
    test_loss = 0.0
    with torch.no_grad():
        for tokens, labels in test:
            test_loss += nn.functional.cross_entropy(model(tokens), labels).item()
    print(f"train {total / len(train):.3f} final {test_loss / len(test):.3f}")


if __name__ == "__main__":
    main()
