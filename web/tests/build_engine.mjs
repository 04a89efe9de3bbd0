// Bundle run_engine.mjs for Node into the folder named by the argument.

import { build } from "vite";

await build({
  configFile: false,
  logLevel: "error",
  build: {
    ssr: "tests/run_engine.mjs",
    outDir: process.argv[2],
    emptyOutDir: false,
    rollupOptions: { output: { entryFileNames: "run_engine.mjs" } },
  },
});
