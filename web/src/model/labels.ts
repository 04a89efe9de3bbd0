// How names are written: in shorter forms, for boxes too narrow for all of a name; and apart from what follows.

// Letters that are written from right to left, and marks that change the direction.
const TURNS = /[\u05be-\u08c7\u200e-\u202e\u2066-\u2069\ufb1d-\ufefc]/;

/** Return a name whose direction does not change the order of what stands beside it. */
export function isolated(name: string): string {
  return TURNS.test(name) ? `\u2068${name}\u2069` : name;
}

/**
 * Return forms of a name, each shorter than the one before; the name itself is the first.
 *
 * What tells neighbours apart is kept longest: an operator's own name, not its namespace; the end
 * of a module's path, not its beginning.
 */
export function shorterForms(name: string): readonly string[] {
  const module = /^(\S+) '(.+)'$/.exec(name);
  if (module) return moduleForms(name, module[1], module[2]);
  const forms = [name];
  const wrapped = /^\w+\((\w+)\)$/.exec(name);
  if (wrapped) return [name, wrapped[1]];
  const plain = plainCppName(name);
  if (plain && plain !== name) forms.push(plain);
  const own = plain.split("::").at(-1) ?? "";
  if (own && own !== plain) forms.push(own);
  const afterHash = plain.split("#").at(-1) ?? "";
  if (afterHash && afterHash !== plain) forms.push(afterHash);
  const method = /^[\w.]*\w(\.[A-Za-z_]\w*(?::\d+)?)$/.exec(plain);
  if (method) forms.push(method[1]);
  return forms;
}

// Only the template argument tells these kernels apart.
const CUTLASS = /\bcutlass::Kernel2?<([\w:]+)/;

/**
 * Return `at::native::kernel` for `void at::native::(anonymous namespace)::kernel<4>(int*)`.
 *
 * A name that is no C++ signature is returned as it is; `plain_cpp_name` in Python does the same.
 */
export function plainCppName(name: string): string {
  const isSignature =
    /(?:[)>]|\) const)$/.test(name) && (name.includes("::") || name.startsWith("void "));
  if (!isSignature || name.includes("operator") || name.includes(" > ")) return name;
  const cutlass = CUTLASS.exec(name);
  if (cutlass) return cutlass[1];
  let kept = "";
  let depth = 0;
  for (const character of name.replaceAll("(anonymous namespace)::", "").replace(/ const$/, "")) {
    if (character === "<" || character === "(") depth += 1;
    else if (character === ">" || character === ")") depth -= 1;
    else if (depth === 0) kept += character;
  }
  return kept.trim().split(" ").at(-1) || name;
}

function moduleForms(name: string, type: string, path: string): string[] {
  const parts = path.split(".");
  const ends = parts.slice(1).map((_, index) => `${type} '…${parts.slice(index + 1).join(".")}'`);
  return [name, ...ends, type];
}
