"""A service: requests come over asyncio, are tokenised in threads and answered under one lock."""

import asyncio
import hashlib
import threading
import time

MODEL = threading.Lock()


def tokenise(text: str) -> list[int]:
    return [int(hashlib.sha1(word.encode()).hexdigest()[:6], 16) for word in text.split()]


def answer(tokens: list[int]) -> int:
    with MODEL:
        time.sleep(0.01)  # another machine computes
        return sum(tokens) % 1000


async def serve(number: int) -> int:
    text = " ".join(f"word{number * i % 977}" for i in range(3000))
    await asyncio.sleep(0.001 * (number % 5))
    tokens = await asyncio.to_thread(tokenise, text)
    return await asyncio.to_thread(answer, tokens)


async def main() -> None:
    answers: list[int] = []
    for _ in range(10):
        answers += await asyncio.gather(*(serve(number) for number in range(32)))
    print(f"{len(answers)} answers")


if __name__ == "__main__":
    asyncio.run(main())
