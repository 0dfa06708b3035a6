// Measures a report in Chromium: `node test/measure.mjs report.html`. Not part of the tests: it takes minutes, and a busy machine
// tells little. Times are in milliseconds, of the page's own clock.
import { chromium } from "playwright-core";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const file = resolve(process.argv[2]);
const context = await chromium.launchPersistentContext(mkdtempSync(join(tmpdir(), "measure-")), {
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, bypassCSP: true, viewport: { width: 1440, height: 900 },
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--enable-precise-memory-info", "--js-flags=--expose-gc"],
});
const page = await context.newPage();
page.setDefaultTimeout(180_000);
page.on("pageerror", (error) => console.log("pageerror", error.message));
await page.goto(`file://${file}#v=1&p=flame,graph`);
await page.waitForSelector("html[data-ready]");
const p95 = (list) => list.sort((a, b) => a - b)[Math.floor(list.length * 0.95)];
const out = {};
out.shown = await page.evaluate(() => Math.round(performance.now()));
/** Runs something in the page and waits until it is painted. */
const timed = (act, ...args) => page.evaluate(async ([act, args]) => {
    const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
    await painted();
    const start = performance.now();
    new Function("args", act)(args);
    await painted();
    while (document.querySelector("[aria-busy=true]")) { await painted(); }
    return performance.now() - start;
}, [act, args]);
const row = "document.querySelectorAll('.navigator .row')";
const dbl = `const row = ${row}[args[0] % ${row}.length]; row.dispatchEvent(new MouseEvent('click', { bubbles: true })); row.dispatchEvent(new MouseEvent('dblclick', { bubbles: true }));`;
await timed(dbl, 0);
const selects = [];
for (let at = 0; at < 25; at++) { selects.push(await timed(dbl, at)); }
out["select p95"] = Math.round(p95(selects));
const type = "const field = document.querySelector('#search'); Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(field, args[0]); field.dispatchEvent(new Event('input', { bubbles: true }));";
const keys = [];
for (const text of ["c", "cl", "cla", "clas", "class", "class1", "class12", "class1", "class", "cla", "c", ""]) { keys.push(await timed(type, text)); }
out["filter p95"] = Math.round(p95(keys.slice(1)));
const frames = [];
for (let at = 0; at < 60; at++) { frames.push(await timed("document.querySelector('.navigator .scroll').scrollTop += 900;")); }
out["scroll p95"] = Math.round(p95(frames));
const change = "const field = document.querySelectorAll('.top select')[0]; field.selectedIndex = args[0]; field.dispatchEvent(new Event('change', { bubbles: true }));";
const count = await page.locator(".top select").first().locator("option").count();
if (count > 1) { out.event = Math.round(await timed(change, 1)); }
out["heap MB"] = await page.evaluate(() => { globalThis.gc?.(); return Math.round(performance.memory.usedJSHeapSize / 1e6); });
console.log(JSON.stringify(out));
await context.close();
