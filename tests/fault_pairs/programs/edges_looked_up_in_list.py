"""Train embeddings for link prediction on a graph with sampled negatives."""

import random

import torch
from torch import nn


class Graph:
    def __init__(self, nodes: int, edges: int, seed: int) -> None:
        self.nodes = nodes
        self.random = random.Random(seed)
        found: set[tuple[int, int]] = set()
        while len(found) < edges:
            first = self.random.randrange(nodes)
            second = (first + 1 + int(self.random.expovariate(0.1))) % nodes
            found.add((first, second))
        self.edges = sorted(found)

    def positives(self, count: int) -> list[tuple[int, int]]:
        return self.random.sample(self.edges, count)


class Negatives:
    """Draws pairs of nodes that are no edge."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.known = graph.edges

    def draw(self, sources: list[int]) -> list[tuple[int, int]]:
        drawn = []
        for source in sources:
            target = self.graph.random.randrange(self.graph.nodes)
            while (source, target) in self.known:  # the problem
                target = self.graph.random.randrange(self.graph.nodes)
            drawn.append((source, target))
        return drawn


class Embeddings(nn.Module):
    def __init__(self, nodes: int, width: int) -> None:
        super().__init__()
        self.sources = nn.Embedding(nodes, width)
        self.targets = nn.Embedding(nodes, width)
        self.mix = nn.Sequential(
            nn.Linear(2 * width, 2 * width), nn.ReLU(), nn.Linear(2 * width, 1)
        )

    def forward(self, pairs: torch.Tensor) -> torch.Tensor:
        both = torch.cat([self.sources(pairs[:, 0]), self.targets(pairs[:, 1])], 1)
        return self.mix(both)[:, 0]


def step(
    model: Embeddings, optimizer: torch.optim.Optimizer, graph: Graph, negatives: Negatives
) -> float:
    edges = graph.positives(256)
    others = negatives.draw([source for source, _ in edges])
    pairs = torch.tensor(edges + others)
    wanted = torch.cat([torch.ones(len(edges)), torch.zeros(len(others))])
    loss = nn.functional.binary_cross_entropy_with_logits(model(pairs), wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def train(steps: int) -> float:
    torch.manual_seed(0)
    graph = Graph(nodes=3000, edges=12000, seed=0)
    negatives = Negatives(graph)
    model = Embeddings(graph.nodes, 128)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    losses = [step(model, optimizer, graph, negatives) for _ in range(steps)]
    return sum(losses[-50:]) / 50


if __name__ == "__main__":
    print(f"last losses {train(steps=140):.4f}")
