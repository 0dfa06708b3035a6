// Refuses what could turn text of a profile into markup or code, or could reach a network.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const banned = [
    [/\b(inner|outer)HTML\b/, "sets markup"],
    [/insertAdjacentHTML|document\.write|createContextualFragment|DOMParser/, "parses markup"],
    [/dangerouslySetInnerHTML/, "sets markup"],
    [/createElement\(\s*["']script|script\.textContent/, "runs text"],
    [/\beval\s*\(|new\s+Function\b|setTimeout\s*\(\s*["'`]/, "runs text"],
    [/\bfetch\s*\(|XMLHttpRequest|WebSocket|EventSource|sendBeacon|importScripts/, "reaches a network"],
    [/\bhref\s*=(?!\s*["{`]*#)/, "links elsewhere than into the page"],
    [/setAttribute\(\s*["'](on|style|src|href)/, "sets an attribute that runs or loads"],
];
let wrong = 0;
for (const entry of readdirSync("src", { recursive: true })) {
    const path = join("src", entry.toString());
    if (!/\.tsx?$/.test(path)) { continue; }
    readFileSync(path, "utf8").split("\n").forEach((line, at) => {
        for (const [pattern, why] of banned) {
            if (pattern.test(line) && !line.includes("lint: ")) {
                console.error(`${path}:${at + 1}: ${why}: ${line.trim()}`);
                wrong += 1;
            }
        }
    });
}
process.exitCode = wrong ? 1 : 0;
