// Builds dist/: the page's program and style sheet, each one file, and the licences of what is in them.
//
// The worker is built first and becomes a string of the program, since a page from file:// has nothing else to load it from.
import { build } from "esbuild";
import { readFileSync, writeFileSync, mkdirSync } from "node:fs";

const dist = new URL("../dist/", import.meta.url);
const common = { bundle: true, minify: true, target: ["chrome111", "firefox115", "safari16.4"], legalComments: "none",
    charset: "ascii", write: false, logLevel: "warning" };

const worker = await build({ ...common, entryPoints: ["src/worker.ts"], format: "iife" });
const app = await build({ ...common, entryPoints: ["src/main.tsx"], format: "iife", jsx: "automatic",
    jsxImportSource: "preact", define: { WORKER: JSON.stringify(worker.outputFiles[0].text) }, metafile: true });
const style = await build({ ...common, entryPoints: ["src/app.css"] });

const text = (result) => result.outputFiles.find((file) => /\.(js|css)$/.test(file.path) || true).text;
// An end tag in a string would end the element that holds the program.
const script = text(app).replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
mkdirSync(dist, { recursive: true });
writeFileSync(new URL("app.js", dist), script);
writeFileSync(new URL("app.css", dist), text(style));

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
console.log(`app.js ${script.length} bytes`);
