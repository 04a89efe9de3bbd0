// Scripts and a style sheet with fixed names: Python serves them, and puts them into one file. Later scripts
// are of views that few pages show; what they share with the first, the first leaves in a global.
import { defineConfig, type UserConfig } from "vite";

const LATER = ["jobs", "roofline", "timeline"];
const SHARED = ["preact/hooks", "preact/jsx-runtime", "../shared"];

export default defineConfig(({ mode }): UserConfig => {
  const isLater = LATER.includes(mode);
  return {
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
        external: isLater ? SHARED : [],
        output: {
          format: "iife",
          entryFileNames: isLater ? `${mode}.js` : "app.js",
          assetFileNames: "app.[ext]",
          globals: () => "deepcontext",
        },
      },
    },
  };
});
