import { expect, test } from "vitest";
import { fromHash, type Place, START, toHash, treeQuery } from "../src/model/address";

const PLACE: Place = {
  ...START,
  view: "sandwich",
  file: 1,
  metric: "gpu_time_ns",
  hidden: ["module", "python"],
  library: true,
  phase: "backward",
  pivot: "phase",
  edits: [
    { kind: "hide", target: 17, label: "aten::add, (in: place)" },
    { kind: "root", target: 3, label: "" },
  ],
  zoom: 12,
  func: 40,
  path: "/home/me/a b#c.py",
  text: "x&y=1",
  color: "self",
  order: "size",
};

test("a place survives the address", () => {
  expect(fromHash(`#${toHash(PLACE)}`)).toEqual(PLACE);
});

test("the start needs no address", () => {
  expect(toHash(START)).toBe("");
  expect(fromHash("")).toEqual(START);
});

test("what cannot be read keeps its start value", () => {
  const place = fromHash(
    "#view=nowhere&file=-1&zoom=x&color=pink&edits=hide:x,boom:1,drop:2:%E0%A4%A",
  );
  expect(place.view).toBe("overview");
  expect(place.file).toBe(0);
  expect(place.zoom).toBe(-1);
  expect(place.color).toBe("layer");
  expect(place.edits.map((edit) => `${edit.kind}:${edit.target}`)).toEqual(["drop:2"]);
});

test("a question names layers in their order, and leaves out host time", () => {
  expect(treeQuery(PLACE, "host_time_ns", false)).toEqual({
    file: "1",
    metric: "gpu_time_ns",
    hidden: "python,module",
    library: "1",
    lines: "",
    phase: "backward",
    pivot: "phase",
    edits: "hide:17,root:3",
  });
  expect(treeQuery(START, "host_time_ns", false).metric).toBe("");
  expect(treeQuery(START, "gpu_time_ns", false).metric).toBe("gpu_time_ns");
});
