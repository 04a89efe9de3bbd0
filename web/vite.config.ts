// Scripts and a style sheet with fixed names: Python serves them, and puts them into one file. Later scripts
// are of views that few pages show; what they share with the first, the first leaves in a global.
import { fileURLToPath } from "node:url";
import { defineConfig, type UserConfig } from "vite";

const LATER = ["jobs", "roofline", "timeline"];
const SHARED = /^(preact\/(hooks|jsx-runtime)|\.\.\/shared)$/;

export default defineConfig(({ mode }): UserConfig => {
  const isLater = LATER.includes(mode);
  return {
    resolve: {
      alias: isLater
        ? [{ find: SHARED, replacement: fileURLToPath(new URL("src/later.ts", import.meta.url)) }]
        : [],
    },
    publicDir: isLater ? false : "public",
    build: {
      outDir: "../src/deepcontext/ui/web/static",
      emptyOutDir: !isLater,
      target: "es2022",
      sourcemap: false,
      cssCodeSplit: false,
      modulePreload: false,
      rollupOptions: {
        input: isLater ? `src/${mode}/main.tsx` : "src/main.tsx",
        treeshake: { propertyReadSideEffects: false },
        output: {
          format: "iife",
          entryFileNames: isLater ? `${mode}.js` : "app.js",
          assetFileNames: "app.[ext]",
        },
      },
    },
  };
});
