import torch
from torch import nn
from torch.nn import functional


class MeanConv(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.neighbours = nn.Linear(inputs, outputs, bias=False)
        self.own = nn.Linear(inputs, outputs)

    def forward(self, x: torch.Tensor, edges: torch.Tensor, degree: torch.Tensor) -> torch.Tensor:
        source, target = edges
        messages = self.neighbours(x[source])  # the problem
        gathered = torch.zeros(x.shape[0], messages.shape[1]).index_add_(0, target, messages)
        return self.own(x) + gathered / degree


class GraphNet(nn.Module):
    def __init__(self, inputs: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.first = MeanConv(inputs, hidden)
        self.second = MeanConv(hidden, classes)

    def forward(self, x: torch.Tensor, edges: torch.Tensor, degree: torch.Tensor) -> torch.Tensor:
        hidden = functional.relu(self.first(x, edges, degree))
        return self.second(hidden, edges, degree)


def make_graph(nodes: int, degree: int, features: int, classes: int) -> tuple[torch.Tensor, ...]:
    labels = torch.randint(0, classes, (nodes,))
    x = torch.randn(nodes, features)
    x[torch.arange(nodes), labels] += 2.0
    edges = torch.randint(0, nodes, (2, nodes * degree))
    counts = torch.bincount(edges[1], minlength=nodes).clamp(min=1)
    return x, edges, counts[:, None].float(), labels


def train(model: nn.Module, graph: tuple[torch.Tensor, ...], epochs: int) -> float:
    x, edges, degree, labels = graph
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(epochs):
        loss = functional.cross_entropy(model(x, edges, degree), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        return (model(x, edges, degree).argmax(1) == labels).float().mean().item()


def main(nodes: int = 3000, epochs: int = 25) -> None:
    torch.manual_seed(0)
    graph = make_graph(nodes, 30, 256, 10)
    accuracy = train(GraphNet(256, 64, 10), graph, epochs)
    print(f"accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
