// Scripts and a style sheet with fixed names: Python serves them, and puts them into one file. Later scripts
// are of views that few pages show; what they share with the first, the first leaves in a global. The engine's
// script runs in a thread of its own, and shares nothing.
import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin, type UserConfig } from "vite";

const LATER = ["jobs", "roofline", "timeline"];

export default defineConfig(({ mode }): UserConfig => {
  const name = [...LATER, "engine"].includes(mode) ? mode : "app";
  return {
    plugins: [elements, LATER.includes(mode) && shared(mode)],
    oxc: { jsx: { runtime: "classic", pragma: "_h", pragmaFrag: "_Fragment" } },
    publicDir: name === "app" && "public",
    build: {
      outDir: "../src/deepcontext/ui/web/static",
      emptyOutDir: name === "app",
      target: "es2022",
      sourcemap: false,
      cssCodeSplit: false,
      modulePreload: false,
      rollupOptions: {
        input: { app: "src/main.tsx" }[name] ?? `src/${name}/main.ts`,
        treeshake: { propertyReadSideEffects: false },
        output: {
          format: "iife",
          entryFileNames: `${name}.js`,
          assetFileNames: "app.[ext]",
        },
      },
    },
  };
});

/** Elements are calls of `h`: they are shorter than those of the JSX runtime, which name all children. */
const elements: Plugin = {
  name: "elements",
  enforce: "pre",
  transform: (code, file) =>
    file.endsWith(".tsx")
      ? `import { h as _h, Fragment as _Fragment } from "preact";${code}`
      : undefined,
};

/** In a later script, what comes from outside its folder is what the first script has. */
function shared(name: string): Plugin {
  const later = fileURLToPath(new URL("src/later.ts", import.meta.url));
  return {
    name: "shared",
    enforce: "pre",
    resolveId: (source, importer) =>
      importer?.includes(`/src/${name}/`) && /^(preact|\.\.\/)/.test(source) ? later : null,
  };
}
