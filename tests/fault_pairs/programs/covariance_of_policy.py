"""Train a continuous-control policy with PPO on a synthetic robot-arm task."""

import torch
from torch import nn
from torch.distributions import MultivariateNormal


class Arm:
    """Many arms side by side; each follows its own target."""

    def __init__(self, arms: int, joints: int) -> None:
        self.random = torch.Generator().manual_seed(1)
        self.angles = torch.zeros(arms, joints)
        self.target = torch.randn(arms, joints, generator=self.random)

    def state(self) -> torch.Tensor:
        return torch.cat([self.angles, self.target], 1)

    def step(self, action: torch.Tensor) -> torch.Tensor:
        self.angles = self.angles + 0.1 * action.tanh()
        return -(self.angles - self.target).square().mean(1)


class ActorCritic(nn.Module):
    def __init__(self, joints: int) -> None:
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(2 * joints, 64), nn.Tanh(), nn.Linear(64, joints))
        self.critic = nn.Sequential(nn.Linear(2 * joints, 64), nn.Tanh(), nn.Linear(64, 1))
        self.register_buffer("variance", torch.full((joints,), 0.36))

    def policy(self, state: torch.Tensor) -> MultivariateNormal:
        mean = self.actor(state)
        covariance = torch.diag_embed(self.variance.expand_as(mean))
        return MultivariateNormal(mean, covariance)  # the problem

    def evaluate(
        self, state: torch.Tensor, action: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        policy = self.policy(state)
        return policy.log_prob(action), self.critic(state).squeeze(-1), policy.entropy()


@torch.no_grad()
def collect(model: ActorCritic, arm: Arm, steps: int) -> list[torch.Tensor]:
    states, actions, chances, rewards = [], [], [], []
    for _ in range(steps):
        state = arm.state()
        policy = model.policy(state)
        action = policy.sample()
        states.append(state)
        actions.append(action)
        chances.append(policy.log_prob(action))
        rewards.append(arm.step(action))
    returns = torch.stack(rewards).flip(0).cumsum(0).flip(0) / steps
    return [torch.cat(states), torch.cat(actions), torch.cat(chances), returns.flatten()]


def update(
    model: ActorCritic, optimizer: torch.optim.Optimizer, rollout: list[torch.Tensor]
) -> float:
    states, actions, old, returns = rollout
    loss = torch.zeros(())
    for part in torch.randperm(len(states)).split(1024):
        chance, value, entropy = model.evaluate(states[part], actions[part])
        advantage = returns[part] - value.detach()
        ratio = (chance - old[part]).exp()
        gain = torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
        error = nn.functional.mse_loss(value, returns[part])
        loss = (0.5 * error - gain - 0.01 * entropy).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main(rounds: int, joints: int) -> None:
    torch.manual_seed(0)
    model = ActorCritic(joints)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-4)
    loss = 0.0
    for _ in range(rounds):
        rollout = collect(model, Arm(256, joints), 32)
        for _ in range(4):
            loss = update(model, optimizer, rollout)
    print(f"loss {loss:.3f}")


if __name__ == "__main__":
    main(rounds=18, joints=12)
