// Two scripts and a style sheet with fixed names: Python serves them, and puts them into one file. The
// second script is for jobs and ranks; what it shares with the first, the first leaves in a global.
import { defineConfig, type UserConfig } from "vite";

const SHARED = ["preact/hooks", "preact/jsx-runtime", "../shared"];

export default defineConfig(({ mode }): UserConfig => {
  const isSecond = mode === "jobs";
  return {
    publicDir: isSecond ? false : "public",
    build: {
      outDir: "../src/deepcontext/ui/web/static",
      emptyOutDir: !isSecond,
      target: "es2022",
      sourcemap: false,
      cssCodeSplit: false,
      modulePreload: false,
      rollupOptions: {
        input: isSecond ? "src/jobs/main.tsx" : "src/main.tsx",
        external: isSecond ? SHARED : [],
        output: {
          format: "iife",
          entryFileNames: isSecond ? "jobs.js" : "app.js",
          assetFileNames: "app.[ext]",
          globals: () => "deepcontext",
        },
      },
    },
  };
});
