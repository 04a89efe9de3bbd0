"""Graph network on OGBG: messages along edges, gathered by indexing as in AlgoPerf."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    graphs: int
    nodes: int
    edges: int
    width: int
    rounds: int = 5


NODE, EDGE, TASKS = 9, 3, 128
SIZES = {"tiny": Size(64, 20, 44, 48), "paper": Size(512, 26, 56, 256)}


def torch_step(size: Size):
    import torch
    from torch import nn
    from training import trained

    def perceptron(inner: int) -> nn.Sequential:
        layer, norm = nn.Linear(inner, size.width), nn.LayerNorm(size.width)
        return nn.Sequential(layer, norm, nn.ReLU())

    class Round(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.edge, self.node = perceptron(4 * size.width), perceptron(4 * size.width)
            self.whole = perceptron(3 * size.width)

        def forward(self, n, e, g, ends, graph_of_node, graph_of_edge):
            e = self.edge(torch.cat([e, n[ends[0]], n[ends[1]], g[graph_of_edge]], dim=1))
            sent = torch.zeros_like(n).index_add(0, ends[0], e)
            received = torch.zeros_like(n).index_add(0, ends[1], e)
            n = self.node(torch.cat([n, sent, received, g[graph_of_node]], dim=1))
            nodes = torch.zeros_like(g).index_add(0, graph_of_node, n)
            edges = torch.zeros_like(g).index_add(0, graph_of_edge, e)
            return n, e, self.whole(torch.cat([nodes, edges, g], dim=1))

    class GraphNetwork(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.node, self.edge = nn.Linear(NODE, size.width), nn.Linear(EDGE, size.width)
            self.rounds = nn.ModuleList(Round() for _ in range(size.rounds))
            self.head = nn.Linear(size.width, TASKS)

        def forward(self, nodes, edges, *places):
            n, e, g = self.node(nodes), self.edge(edges), nodes.new_zeros(size.graphs, size.width)
            for each in self.rounds:
                n, e, g = each(n, e, g, *places)
            return self.head(g)

    model = GraphNetwork()
    nodes = torch.randn(size.graphs * size.nodes, NODE)
    edges = torch.randn(size.graphs * size.edges, EDGE)
    graph_of_node = torch.arange(size.graphs).repeat_interleave(size.nodes)
    graph_of_edge = torch.arange(size.graphs).repeat_interleave(size.edges)
    ends = torch.randint(size.nodes, (2, len(edges))) + size.nodes * graph_of_edge
    tasks = torch.randint(2, (size.graphs, TASKS)).float()

    def loss() -> torch.Tensor:
        logits = model(nodes, edges, ends, graph_of_node, graph_of_edge)
        return nn.functional.binary_cross_entropy_with_logits(logits, tasks)

    return trained(model, loss)


def jax_step(size: Size):
    import jax
    import jax.numpy as jnp
    import layers
    import numpy as np

    def perceptron(p, name, *parts):
        x = layers.dense(p, jnp.concatenate(parts, axis=1), size.width, name)
        return jax.nn.relu(layers.layer_norm(p, x, f"{name}_norm"))

    def loss(p, nodes, edges, ends, graph_of, tasks):
        graph_of_node, graph_of_edge = graph_of
        n = layers.dense(p, nodes, size.width, "node")
        e = layers.dense(p, edges, size.width, "edge")
        g = jnp.zeros((size.graphs, size.width))
        for index in range(size.rounds):
            inside = p.at(f"round{index}")
            e = perceptron(inside, "edge", e, n[ends[0]], n[ends[1]], g[graph_of_edge])
            sent, received = (jax.ops.segment_sum(e, end, len(n)) for end in ends)
            n = perceptron(inside, "node", n, sent, received, g[graph_of_node])
            of_nodes = jax.ops.segment_sum(n, graph_of_node, size.graphs)
            of_edges = jax.ops.segment_sum(e, graph_of_edge, size.graphs)
            g = perceptron(inside, "whole", of_nodes, of_edges, g)
        logits = layers.dense(p, g, TASKS, "head")
        return jnp.mean(jax.nn.softplus(logits) - tasks * logits)

    random = np.random.default_rng(0)
    counts = (size.graphs * size.nodes, size.graphs * size.edges)
    nodes = random.standard_normal((counts[0], NODE), dtype=np.float32)
    edges = random.standard_normal((counts[1], EDGE), dtype=np.float32)
    graph_of_node, graph_of_edge = (np.arange(n) // (n // size.graphs) for n in counts)
    ends = random.integers(size.nodes, size=(2, counts[1])) + size.nodes * graph_of_edge
    tasks = random.integers(2, size=(size.graphs, TASKS)).astype(np.float32)
    batch = (nodes, edges, ends, [graph_of_node, graph_of_edge], tasks)
    return layers.trained(loss, *jax.tree.map(jnp.asarray, batch))
