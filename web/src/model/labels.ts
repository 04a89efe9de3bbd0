// Shorter forms of a name, for boxes too narrow for all of it.

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
  // A kernel's template arguments may name more than the kernel does.
  const isCpp = name.includes("::") || name.startsWith("void ");
  const plain = isCpp ? name.replace(/^void /, "").replace(/[<(].+$/, "") : name;
  if (plain && plain !== name) forms.push(plain);
  const own = plain.split("::").at(-1) ?? "";
  if (own && own !== plain) forms.push(own);
  const afterHash = plain.split("#").at(-1) ?? "";
  if (afterHash && afterHash !== plain) forms.push(afterHash);
  const method = /^[\w.]*\w(\.\w+(?::\d+)?)$/.exec(plain);
  if (method) forms.push(method[1]);
  return forms;
}

function moduleForms(name: string, type: string, path: string): string[] {
  const parts = path.split(".");
  const ends = parts.slice(1).map((_, index) => `${type} '…${parts.slice(index + 1).join(".")}'`);
  return [name, ...ends, type];
}
