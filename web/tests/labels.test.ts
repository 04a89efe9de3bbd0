import { expect, test } from "vitest";
import names from "../../tests/golden/web/name_cases.json";
import { plainCppName, shorterForms } from "../src/model/labels";

test.each(names)("$name is $plain without what says least", ({ name, plain }) => {
  expect(plainCppName(name)).toBe(plain);
});

test.each([
  ["aten::addmm", ["aten::addmm", "addmm"]],
  ["Net.forward", ["Net.forward", ".forward"]],
  ["Net.forward:12", ["Net.forward:12", ".forward:12"]],
  ["Optimizer.step#SGD.step", ["Optimizer.step#SGD.step", "SGD.step"]],
  ["jit(train_step)", ["jit(train_step)", "train_step"]],
  ["main", ["main"]],
  ["copy_bitcast_fusion.5", ["copy_bitcast_fusion.5"]],
  ["<module>", ["<module>"]],
  ["Linear 'a.b.0'", ["Linear 'a.b.0'", "Linear '…b.0'", "Linear '…0'", "Linear"]],
  [
    "void at::native::kernel<4, at::Functor<float>>(int)",
    ["void at::native::kernel<4, at::Functor<float>>(int)", "at::native::kernel", "kernel"],
  ],
])("%s is shortened from where it says least", (name, forms) => {
  expect(shorterForms(name)).toEqual(forms);
});
