// What later scripts take from the first: all run one copy of each module.

import { Fragment, h } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Surface } from "./draw/surface";
import { openMore } from "./drop";
import { START } from "./model/address";
import { mix, palette } from "./model/colors";
import { formatCount, formatShare, formatTime, formatValue } from "./model/format";
import { about, dark, go, measure, place, profile, showNode, tree } from "./state";
import { Bar, Legend, Stack } from "./views/bar";
import { layerFills } from "./views/coloring";
import { addViews } from "./views/later_views";
import { Empty, Link, Select, SourceLink, Subtabs, ValueCell, Waiting } from "./views/parts";
import { PlainTable, time } from "./views/plain_table";
import { Pointer } from "./views/pointer";
import { useAnswer } from "./views/use_answer";

export const shared = {
  Fragment,
  h,
  useEffect,
  useMemo,
  useRef,
  useState,
  openMore,
  START,
  mix,
  palette,
  layerFills,
  formatCount,
  formatShare,
  formatTime,
  formatValue,
  about,
  dark,
  go,
  measure,
  place,
  profile,
  showNode,
  tree,
  Bar,
  Legend,
  Stack,
  addViews,
  Empty,
  Link,
  Select,
  SourceLink,
  Subtabs,
  ValueCell,
  Waiting,
  Surface,
  PlainTable,
  Pointer,
  time,
  useAnswer,
};
