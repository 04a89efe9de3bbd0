"""Score detections against the truth of each image."""

import torch


def area(box: torch.Tensor) -> torch.Tensor:
    return (box[2] - box[0]) * (box[3] - box[1])


def overlap(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    low = torch.maximum(first[:2], second[:2])
    high = torch.minimum(first[2:], second[2:])
    size = (high - low).clamp(min=0)
    shared = size[0] * size[1]
    return shared / (area(first) + area(second) - shared)


class Scorer:
    def __init__(self) -> None:
        self.best: list[float] = []

    def add(self, found: torch.Tensor, truth: torch.Tensor) -> None:
        scores = torch.zeros(len(found), len(truth))
        for row, box in enumerate(found):
            for column, other in enumerate(truth):
                scores[row, column] = overlap(box, other)  # the problem
        self.best.append(scores.max(1).values.mean().item())


def random_boxes(count: int) -> torch.Tensor:
    corner = torch.rand(count, 2)
    return torch.cat((corner, corner + torch.rand(count, 2)), 1)


def main(images: int) -> None:
    torch.manual_seed(0)
    scorer = Scorer()
    for _ in range(images):
        scorer.add(random_boxes(40), random_boxes(30))
    print(sum(scorer.best) / images)


if __name__ == "__main__":
    main(30)
