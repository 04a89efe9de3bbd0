import { expect, test } from "vitest";
import { batch, computed, effect, signal } from "../src/signals";

test("an effect runs again for what it read last, and for nothing else", () => {
  const [chosen, first, second] = [signal("first"), signal(1), signal(2)];
  const seen: number[] = [];
  effect(() => {
    seen.push(chosen.value === "first" ? first.value : second.value);
  });
  second.value = 3;
  first.value = 4;
  first.value = 4;
  chosen.value = "second";
  first.value = 5;
  expect(seen).toEqual([1, 4, 3]);
});

test("a computed value is made when it is read, once for each change", () => {
  const source = signal(1);
  let made = 0;
  const twice = computed(() => {
    made += 1;
    return 2 * source.value;
  });
  source.value = 2;
  expect(made).toBe(0);
  expect([twice.value, twice.value, made]).toEqual([4, 4, 1]);
  source.value = 3;
  expect([twice.value, made]).toEqual([6, 2]);
});

test("effects never see half of a change", () => {
  const [first, second] = [signal(1), signal(1)];
  const sum = computed(() => first.value + second.value);
  const seen: number[][] = [];
  effect(() => {
    seen.push([first.value, sum.value]);
  });
  batch(() => {
    first.value = 2;
    second.value = 2;
  });
  first.value = 3;
  expect(seen).toEqual([
    [1, 2],
    [2, 4],
    [3, 5],
  ]);
});

test("an effect may change what other effects read", () => {
  const [from, to] = [signal(1), signal(0)];
  const seen: number[] = [];
  effect(() => {
    to.value = from.value + 1;
  });
  effect(() => {
    seen.push(to.value);
  });
  from.value = 5;
  expect(seen).toEqual([2, 6]);
});
