"""Classify the papers of a citation graph with a graph convolutional network."""

import torch
from torch import nn


class Graph:
    """Papers of the same class cite each other more often."""

    def __init__(self, papers: int, citations: int, features: int, classes: int) -> None:
        random = torch.Generator().manual_seed(0)
        self.labels = torch.randint(classes, (papers,), generator=random)
        order = self.labels.argsort()
        place = torch.randint(papers, (citations,), generator=random)
        shift = (200 * torch.randn(citations, generator=random)).long()
        self.edges = torch.stack([order[place], order[(place + shift) % papers]])
        centers = torch.randn(classes, features, generator=random)
        noise = torch.randn(papers, features, generator=random)
        self.features = 0.3 * centers[self.labels] + noise
        self.train = torch.rand(papers, generator=random) < 0.3
        self.papers = papers

    def adjacency(self) -> torch.Tensor:
        loops = torch.arange(self.papers).expand(2, -1)
        edges = torch.cat([self.edges, self.edges.flip(0), loops], 1)
        degree = torch.bincount(edges[0], minlength=self.papers).float()
        weights = (degree[edges[0]] * degree[edges[1]]).rsqrt()
        matrix = torch.sparse_coo_tensor(edges, weights, (self.papers, self.papers))
        return matrix.coalesce().to_dense()  # the problem


class Convolution(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, adjacency: torch.Tensor, nodes: torch.Tensor) -> torch.Tensor:
        return adjacency @ self.linear(nodes)


class Network(nn.Module):
    def __init__(self, features: int, width: int, classes: int) -> None:
        super().__init__()
        self.first = Convolution(features, width)
        self.second = Convolution(width, width)
        self.last = Convolution(width, classes)

    def forward(self, adjacency: torch.Tensor, nodes: torch.Tensor) -> torch.Tensor:
        hidden = self.first(adjacency, nodes).relu()
        hidden = nn.functional.dropout(hidden, 0.5, self.training)
        hidden = self.second(adjacency, hidden).relu()
        return self.last(adjacency, hidden)


def train(epochs: int) -> float:
    torch.manual_seed(0)
    graph = Graph(papers=3000, citations=15000, features=500, classes=7)
    adjacency = graph.adjacency()
    model = Network(500, 128, 7)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=5e-4)
    for _ in range(epochs):
        logits = model(adjacency, graph.features)
        loss = nn.functional.cross_entropy(logits[graph.train], graph.labels[graph.train])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.inference_mode():
        right = model(adjacency, graph.features).argmax(1) == graph.labels
    return right[~graph.train].float().mean().item()


if __name__ == "__main__":
    print(f"accuracy {train(epochs=45):.3f}")
