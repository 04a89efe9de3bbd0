"""Keeps its values in tensors and reads one every tenth step."""

import torch
from torch import nn

torch.manual_seed(0)
net = nn.Linear(64, 10)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
data, labels = torch.randn(32, 64), torch.randint(0, 10, (32,))
total = torch.zeros(())
for step in range(20):
    scores = net(data)
    wrong = (scores.argmax(1) != labels).sum()
    loss = nn.functional.cross_entropy(scores, labels)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    total += loss.detach() / (1 + wrong)
    if step % 10 == 0:
        print(total.item())
