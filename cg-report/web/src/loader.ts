// What the page runs first: unpacks its program and runs that, which the policy allows by its hash and by nothing else.

import { bytesOf, inflate } from "./data/columns.ts";
import { sorry } from "./ui/sorry.ts";

async function start() {
    if (typeof DecompressionStream !== "function" || typeof Object.hasOwn !== "function") {
        sorry("This browser is too old for this report: it needs Chromium 111, Firefox 115, Safari 16.4, or a later one.");
        return;
    }
    const code = await inflate(bytesOf(document.getElementById("program")?.textContent ?? ""));
    const script = document.createElement("script"); // lint: as the next line
    script.textContent = new TextDecoder().decode(code); // lint: the policy runs it only if it is our own
    document.body.append(script);
    script.remove();
    // A program that is not the one of the policy has not been run, and nobody else says so.
    if (!document.documentElement.dataset.started) { throw new Error("its program is not the one that was written"); }
}

start().catch((error) => {
    sorry(`This report is damaged and cannot be shown: ${error instanceof Error ? error.message : String(error)}.`);
});
