// One script and one style sheet with fixed names: Python serves them, and puts them into one file.
import { defineConfig } from "vite";

export default defineConfig({
  build: {
    outDir: "../src/deepcontext/ui/web/static",
    emptyOutDir: true,
    target: "es2022",
    sourcemap: false,
    cssCodeSplit: false,
    modulePreload: false,
    rollupOptions: {
      input: "src/main.tsx",
      output: {
        format: "iife",
        entryFileNames: "app.js",
        assetFileNames: "app.[ext]",
      },
    },
  },
});
