// Takes pictures of every view in both themes: `node pictures.mjs report.html FOLDER [FUNCTION]` writes VIEW-light.png and VIEW-dark.png, and with
// them what somebody who looks at a picture may miss: texts of less contrast than is allowed (4.5), and texts that are cut off without a
// way to read them. FUNCTION is made active; else it is the most expensive one that is not all of the program. The status is 1 if anything is told.
import { chromium } from "playwright-core";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const [report, folder, name] = process.argv.slice(2);
if (!report || !folder) { throw new Error("usage: node pictures.mjs report.html FOLDER [FUNCTION]"); }
mkdirSync(folder, { recursive: true });
const scratch = mkdtempSync(join(tmpdir(), "pictures-"));
const context = await chromium.launchPersistentContext(scratch, {
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, viewport: { width: 1360, height: 850 },
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

/** Texts of the page that are hard to read, or cut off. */
function unreadable() {
    const numbers = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
    const light = ([r, g, b]) => {
        const [x, y, z] = [r, g, b].map((value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const over = (top, below) => { const [r, g, b, a = 1] = top; return [r, g, b].map((value, at) => value * a + below[at] * (1 - a)); };
    const behind = (element) => {
        const layers = [];
        for (let up = element; up; up = up.parentElement) {
            const colour = numbers(getComputedStyle(up).backgroundColor);
            if ((colour[3] ?? 1) > 0) { layers.push(colour); }
            if ((colour[3] ?? 1) === 1 && colour.length >= 3) { break; }
        }
        return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
    };
    const found = new Set();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const element = node.parentElement;
        const text = node.data.trim();
        if (!text || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) || element.closest(".hidden, option")) { continue; }
        const style = getComputedStyle(element);
        const ground = behind(element);
        const svg = element instanceof SVGElement;
        const [a, b] = [light(over(numbers(svg ? style.fill : style.color), ground)), light(ground)].sort((x, y) => y - x);
        const contrast = (a + 0.05) / (b + 0.05);
        const kind = `${element.tagName.toLowerCase()}.${element.getAttribute("class") ?? ""}`;
        // What lies on painted cells has the colours that those choose.
        if (!svg && contrast < 4.5) { found.add(`contrast ${contrast.toFixed(2)}: ${kind} "${text.slice(0, 40)}"`); }
        const told = element.closest("[title]") ?? element.closest("[role=row], .line");
        if (!svg && element.scrollWidth > element.clientWidth + 1 && ["hidden", "clip"].includes(style.overflowX) && !told) {
            found.add(`cut off: ${kind} "${text.slice(0, 60)}"`);
        }
    }
    return [...found];
}

let faults = 0;
try {
    for (const theme of ["light", "dark"]) {
        const page = await context.newPage();
        page.on("pageerror", (error) => { faults += 1; console.log(`${theme}: ${error}`); });
        await page.emulateMedia({ colorScheme: theme });
        await page.goto(`file://${resolve(report)}#v=1&p=overview,flame`);
        await page.waitForSelector("html[data-ready]");
        const settled = async () => {
            await page.waitForFunction(() => !document.querySelector("[aria-busy=true]"));
            await page.waitForTimeout(250);
        };
        const take = async (view) => {
            await settled();
            await page.screenshot({ path: join(folder, `${view}-${theme}.png`) });
            for (const fault of await page.evaluate(unreadable)) {
                faults += 1;
                console.log(`${view}, ${theme}: ${fault}`);
            }
        };
        await take("program");
        if (name) {
            await page.locator("#search").fill(name);
            await settled();
            await page.locator(".navigator .row").first().dblclick();
            await page.locator("#search").fill("");
            await page.locator("#search").blur();
        } else {
            await page.locator(".navigator .row").nth(1).dblclick();
        }
        const views = await page.locator("#pane-0").evaluate((pane) => [...document.querySelectorAll("[id^=tab-0-]")].map((tab) => tab.id.slice("tab-0-".length)));
        // One after another in the upper pane, beside the flame graph, so that both are seen with what is around them.
        for (const view of views) {
            await page.locator(`#tab-0-${view}`).click();
            await take(view);
        }
        await page.keyboard.press("?");
        await take("help");
        await page.close();
    }
} finally {
    await context.close();
    rmSync(scratch, { recursive: true, force: true });
}
console.log(faults > 0 ? `${faults} things to mend` : "nothing to mend that can be measured");
process.exitCode = faults > 0 ? 1 : 0;
