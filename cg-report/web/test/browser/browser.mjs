// What browser tests share: a browser, a page that tells everything that goes wrong, and ways to look at the report.
import { chromium } from "playwright-core";
import { mkdtempSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const SWITCHES = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync"];

/** A browser with a profile of its own. */
export function launch(options = {}) {
    const folder = mkdtempSync(join(process.env.REPORTS ?? tmpdir(), "chromium-"));
    return chromium.launchPersistentContext(folder, {
        executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: SWITCHES, headless: true,
        viewport: { width: 1440, height: 900 }, ...options,
    });
}

export function report(name, hash = "") {
    return `file://${process.env.REPORTS}/${name}.html${hash}`;
}

/** Opens a report; `page.faults` collects what a user must never see. What is unpacked comes `slow` milliseconds later, as on a busy machine. */
export async function open(context, name, hash = "", slow = Number(process.env.SLOW ?? 0)) {
    const page = await context.newPage();
    if (slow > 0) {
        await page.addInitScript((slow) => {
            const unpack = Response.prototype.arrayBuffer;
            Response.prototype.arrayBuffer = async function () {
                const bytes = await unpack.call(this);
                await new Promise((done) => { setTimeout(done, slow); });
                return bytes;
            };
        }, slow);
    }
    page.setDefaultTimeout(15000);
    page.faults = [];
    page.on("console", (message) => { if (["error", "warning"].includes(message.type())) { page.faults.push(message.text()); } });
    page.on("pageerror", (error) => page.faults.push(String(error.stack ?? error)));
    page.on("dialog", (dialog) => { page.faults.push(`dialog: ${dialog.message()}`); void dialog.dismiss(); });
    page.on("request", (request) => {
        if (!request.url().startsWith("file:") && !request.url().startsWith("blob:") && !request.url().startsWith("data:")) { page.faults.push(`request: ${request.url()}`); }
    });
    await page.goto(report(name, hash));
    await page.waitForSelector("html[data-ready]");
    return page;
}

const BUSY = "[aria-busy=true], [role=status].muted";

/** Waits until everything that was asked for is there: what is shown then may ask for more. */
export async function settled(page) {
    const frames = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    for (let quiet = 0; quiet < 2; quiet++) {
        await page.waitForFunction((text) => !document.querySelector(text), BUSY);
        await page.evaluate(frames);
        if (await page.locator(BUSY).count() > 0) { quiet = -1; }
    }
}

/** The text of the rows of a table that are in the document, cell by cell. */
export function rows(page, label) {
    return page.evaluate((label) => {
        const table = document.querySelector(`[aria-label="${label}"][role=grid], [aria-label="${label}"][role=treegrid]`);
        const sorted = [...table.querySelectorAll("[role=row]")].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex);
        return sorted.slice(1).map((row) => [...row.children].map((cell) => [...cell.childNodes].filter(({ className }) => className !== "indent").map((node) => node.textContent).join("")));
    }, label);
}

export const VIEWS = ["overview", "flame", "graph", "treemap", "calls", "code", "calltree", "functions"];

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What shuts people out of a page as it is, told with where. */
export async function shutOut(page) {
    await page.evaluate(axe);
    const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] }));
    const grave = found.violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    return grave.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 2).map(({ html, failureSummary }) => `${html.slice(0, 120)} ${failureSummary.slice(0, 200)}`).join(" | ")}`);
}
