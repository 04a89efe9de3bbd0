// The script of the engine's thread. The page's own thread runs it only where a browser refuses to start another.

import { answerOn, type Port } from "./thread";

if ("document" in globalThis) Object.assign(globalThis, { deepcontextEngine: answerOn });
else answerOn(globalThis as unknown as Port);
