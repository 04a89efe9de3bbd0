"""Knowledge-graph completion: low-rank bilinear scores evaluated against all entities."""
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

ENTITIES = 900
RELATIONS = 12
RANK = 24
EPOCHS = 7
BATCH = 64


class Graph:
    def __init__(self, seed=0):
        rng = np.random.default_rng(seed)
        kind = rng.integers(0, 10, ENTITIES)
        wanted = rng.integers(0, 10, (RELATIONS, 10))
        head = rng.integers(0, ENTITIES, 4000)
        relation = rng.integers(0, RELATIONS, 4000)
        tail = np.empty(4000, int)
        for i in range(4000):
            tail[i] = rng.choice(np.flatnonzero(kind == wanted[relation[i], kind[head[i]]]))
        self.triples = np.stack([head, relation, tail], 1)
        self.train, self.test = self.triples[:2600], self.triples[2600:3200]


class Bilinear:
    def __init__(self, seed=1):
        rng = np.random.default_rng(seed)
        self.entity = 0.3 * rng.standard_normal((ENTITIES, RANK))
        self.relation = 0.3 * rng.standard_normal((RELATIONS, RANK, RANK))

    def scores(self, head, relation):
        h = self.entity[head]
        r = self.relation[relation]
        return np.einsum("bi,bij,ej->be", h, r, self.entity)  # the problem

    def step(self, batch, lr):
        head, relation, tail = batch.T
        s = self.scores(head, relation)
        p = np.exp(s - s.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        rows = np.arange(len(batch))
        loss = -np.log(p[rows, tail]).mean()
        p[rows, tail] -= 1.0
        h, r = self.entity[head], self.relation[relation]
        pulled = p @ self.entity
        hr = (h[:, None, :] @ r)[:, 0]
        grad_entity = p.T @ hr
        np.add.at(grad_entity, head, (r @ pulled[:, :, None])[:, :, 0])
        grad_relation = np.zeros_like(self.relation)
        np.add.at(grad_relation, relation, h[:, :, None] * pulled[:, None, :])
        self.entity -= lr * grad_entity / len(batch)
        self.relation -= lr * grad_relation / len(batch)
        return loss


def mean_rank(model, triples):
    total = 0.0
    for start in range(0, len(triples), BATCH):
        head, relation, tail = triples[start : start + BATCH].T
        s = model.scores(head, relation)
        target = s[np.arange(len(tail)), tail]
        total += (s > target[:, None]).sum()
    return total / len(triples)


def main():
    graph = Graph()
    model = Bilinear()
    rng = np.random.default_rng(2)
    for epoch in range(EPOCHS):
        order = rng.permutation(len(graph.train))
        losses = [model.step(graph.train[order[i : i + BATCH]], 4.0) for i in range(0, len(order), BATCH)]
        print(f"epoch {epoch} loss {np.mean(losses):.4f}")
    print(f"final loss {np.mean(losses):.3f} rank {mean_rank(model, graph.test):.1f}")


if __name__ == "__main__":
    main()
