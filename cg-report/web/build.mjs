// Builds dist/: what unpacks the page's program, the program, what runs beside it, and the style sheet of the page without it, each one file, and the
// licences of what is in them.
import { build } from "esbuild";
import { readFileSync, writeFileSync, mkdirSync } from "node:fs";

const dist = new URL("../dist/", import.meta.url);
const common = { bundle: true, minify: true, target: ["chrome111", "firefox115", "safari16.4"], legalComments: "none",
    charset: "ascii", write: false, logLevel: "warning" };

const loader = await build({ ...common, entryPoints: ["src/loader.ts"], format: "iife" });
const worker = await build({ ...common, entryPoints: ["src/worker.ts"], format: "iife" });
const text = (result) => result.outputFiles.find((file) => /\.(js|css)$/.test(file.path) || true).text;
const base = await build({ ...common, entryPoints: ["src/base.css"] });
const style = await build({ ...common, entryPoints: ["src/app.css"] });
const app = await build({ ...common, entryPoints: ["src/main.tsx"], format: "iife", jsx: "automatic",
    jsxImportSource: "preact", define: { STYLE: JSON.stringify(text(style)) } });

mkdirSync(dist, { recursive: true });
writeFileSync(new URL("loader.js", dist), text(loader));
writeFileSync(new URL("app.js", dist), text(app));
writeFileSync(new URL("worker.js", dist), text(worker));
writeFileSync(new URL("base.css", dist), text(base));

const packages = ["preact", "@preact/signals", "@preact/signals-core", "d3-hierarchy", "@dagrejs/dagre", "@dagrejs/graphlib"];
const licences = packages.map((name) => {
    const folder = new URL(`node_modules/${name}/`, import.meta.url);
    const about = JSON.parse(readFileSync(new URL("package.json", folder), "utf8"));
    const licence = ["LICENSE", "LICENSE.md", "LICENSE.txt"].map((file) => {
        try { return readFileSync(new URL(file, folder), "utf8"); } catch { return ""; }
    }).find((text) => text);
    if (!licence) { throw new Error(`${name} has no licence text`); }
    return `${name} ${about.version} (${about.license})\n\n${licence.trim()}\n`;
});
writeFileSync(new URL("LICENSES.txt", dist), licences.join("\n" + "-".repeat(80) + "\n\n"));
console.log(`app.js ${text(app).length} bytes, worker.js ${text(worker).length}`);
