// Measures reports beside what they are to reach: `node test/measure.mjs FILE…` prints a table; with --synthetic also of a profile that it
// makes, of 200,000 functions and 2 million calls. A FILE is a profile, of which a report is made by $CG_REPORT (target/release/cg_report),
// or a report. Not part of the tests: it takes minutes, and a busy machine tells little. Times in the page are of its own clock. The status is 1
// if anything takes more than twice of what it may.
import { chromium } from "playwright-core";
import { spawn } from "node:child_process";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";

const PROGRAM = process.env.CG_REPORT ?? resolve(import.meta.dirname, "../../../target/release/cg_report");
const scratch = mkdtempSync(join(tmpdir(), "measure-"));

/** A profile of functions that call others behind them, at random but always the same. */
function synthetic(path, functions = 200_000, calls = 10, events = ["Ir", "Dr", "Dw", "D1mr", "D1mw", "Bc"]) {
    let state = 1;
    const random = (below) => { state = (Math.imul(state, 1664525) + 1013904223) >>> 0; return (state >>> 4) % below; };
    const file = openSync(path, "w");
    const costs = () => events.map(() => random(50_000)).join(" ");
    let text = `# callgrind format\ncreator: a test\ncmd: synthetic\nevents: ${events.join(" ")}\n`;
    for (let f = 0; f < functions; f++) {
        text += `fl=(${f % 1000})${f < 1000 ? ` source${f}.c` : ""}\nfn=(${f}) ns${f % 300}::class${f % 5000}::function${f}\n${random(900) + 1} ${costs()}\n`;
        for (let call = 0; call < calls && f + 1 < functions; call++) {
            // What is called may not have been named yet, so names stand where they are needed.
            const to = Math.min(functions - 1, f + 1 + random(2000));
            text += `cfi=(${to % 1000}) source${to % 1000}.c\ncfn=(${to}) ns${to % 300}::class${to % 5000}::function${to}\ncalls=${1 + random(100)} 1\n${random(900) + 1} ${costs()}\n`;
        }
        if (text.length > 1 << 22) { writeSync(file, text); text = ""; }
    }
    writeSync(file, text);
    closeSync(file);
}

/** Makes a report; gives seconds, and the most memory that it took, in bytes. */
function make(profile, report) {
    return new Promise((done, failed) => {
        const start = performance.now();
        const child = spawn(PROGRAM, ["--max-size", "1G", "-o", report, profile], { stdio: ["ignore", "ignore", "inherit"] });
        let most = 0;
        const look = setInterval(() => {
            try {
                most = Math.max(most, Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1] ?? 0) * 1024);
            } catch {
                // It has ended.
            }
        }, 2);
        child.on("error", failed);
        child.on("exit", (status) => {
            clearInterval(look);
            if (status === 0) { done({ seconds: (performance.now() - start) / 1000, memory: most }); } else { failed(new Error(`cg_report: status ${status}`)); }
        });
    });
}

const p95 = (list) => list.sort((a, b) => a - b)[Math.floor(list.length * 0.95)];

async function look(report) {
    const context = await chromium.launchPersistentContext(mkdtempSync(join(scratch, "chromium-")), {
        executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, bypassCSP: true, viewport: { width: 1440, height: 900 },
        args: ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--enable-precise-memory-info", "--js-flags=--expose-gc"],
    });
    const page = await context.newPage();
    page.setDefaultTimeout(180_000);
    page.on("pageerror", (error) => console.error("pageerror", error.message));
    // When the page has been painted with all that it shows first; the browser may not have read all of the file by then.
    await page.addInitScript(() => {
        const ready = () => {
            if (!document.documentElement?.hasAttribute("data-ready")) { return; }
            watch.disconnect();
            requestAnimationFrame(() => setTimeout(() => { window.painted = performance.now(); }, 0));
        };
        const watch = new MutationObserver(ready);
        watch.observe(document, { attributes: true, subtree: true, attributeFilter: ["data-ready"] });
    });
    await page.goto(`file://${report}#v=1&p=flame,graph`);
    await page.waitForFunction(() => window.painted !== undefined);
    const out = { shown: await page.evaluate(() => Math.round(window.painted)) };
    await page.waitForFunction(() => document.readyState === "complete");
    out.read = await page.evaluate(() => Math.round(performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd));
    out.functions = await page.evaluate(() => JSON.parse(document.querySelector("#head").textContent).functions);
    out.loaded = await page.evaluate(() => { globalThis.gc?.(); return performance.memory.usedJSHeapSize; });
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
    for (let at = 0; at < 40; at++) { selects.push(await timed(dbl, at)); }
    out.select = p95(selects);
    const type = "const field = document.querySelector('#search'); Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(field, args[0]); field.dispatchEvent(new Event('input', { bubbles: true }));";
    const keys = [];
    for (const text of ["c", "cl", "cla", "clas", "class", "class1", "class12", "class1", "class", "cla", "c", ""]) { keys.push(await timed(type, text)); }
    out.filter = p95(keys.slice(1));
    const frames = [];
    for (let at = 0; at < 60; at++) { frames.push(await timed("document.querySelector('.navigator .scroll').scrollTop += 900;")); }
    out.scroll = p95(frames);
    const change = "const field = document.querySelectorAll('.top select')[0]; field.selectedIndex = args[0]; field.dispatchEvent(new Event('change', { bubbles: true }));";
    const count = await page.locator(".top select").first().locator("option").count();
    if (count > 1) { out.event = await timed(change, 1); }
    out.heap = await page.evaluate(() => { globalThis.gc?.(); return performance.memory.usedJSHeapSize; });
    await context.close();
    return out;
}

const MB = 1e6;
let late = false;
function tell(what, value, unit, target) {
    const text = value >= 100 ? value.toFixed(0) : value.toFixed(value >= 10 ? 1 : 2);
    const verdict = target === undefined ? "" : value <= target ? "reached" : value <= 2 * target ? "missed" : "MORE THAN TWICE";
    late ||= verdict.startsWith("MORE");
    console.log(`| ${what} | ${target === undefined ? "" : `${Number(target.toFixed(2))} ${unit}`} | ${text} ${unit} | ${verdict} |`);
}

try {
    const files = process.argv.slice(2);
    if (files.includes("--synthetic")) {
        files.splice(files.indexOf("--synthetic"), 1, join(scratch, "synthetic.out"));
        synthetic(join(scratch, "synthetic.out"));
    }
    if (files.length === 0) { throw new Error("usage: node test/measure.mjs [--synthetic] FILE…"); }
    for (const file of files) {
        console.log(`\n${basename(file)}, ${(statSync(file).size / MB).toFixed(1)} MB\n\n| what | target | measured | |\n|---|---|---|---|`);
        let report = resolve(file);
        const size = statSync(file).size / MB;
        if (!file.endsWith(".html")) {
            if (!existsSync(PROGRAM)) { throw new Error(`${PROGRAM} is not built`); }
            report = join(scratch, `${basename(file)}.html`);
            const { seconds, memory } = await make(file, report);
            // 24 MB in 1 s and 100 MB in 4 s are as much for each.
            tell("cg_report: time", seconds, "s", Math.max(1, size / 24.5));
            // The program alone is larger than a small profile.
            tell("cg_report: memory, as a multiple of the file", memory / MB / size, "times", size > 5 ? 6 : undefined);
            tell("cg_report: memory", memory / MB, "MB");
            tell("report", statSync(report).size / MB, "MB");
        }
        const seen = await look(report);
        const large = seen.functions >= 100_000;
        tell("functions", seen.functions, "");
        tell("first paint", seen.shown / 1000, "s", large ? 4 : 1.5);
        tell("all of it read", seen.read / 1000, "s");
        tell("select a function, two panes, p95", seen.select, "ms", 100);
        tell("filter names, p95 of a key", seen.filter, "ms", 50);
        tell("scroll a table, p95 of a frame", seen.scroll, "ms", 33);
        if (seen.event !== undefined) { tell("another event", seen.event, "ms", 300); }
        tell("heap after load", seen.loaded / MB, "MB", 300);
        tell("heap at the end", seen.heap / MB, "MB");
        if (report.startsWith(scratch)) { rmSync(report); }
    }
} finally {
    rmSync(scratch, { recursive: true, force: true });
}
process.exitCode = late ? 1 : 0;
