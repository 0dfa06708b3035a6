// Takes the pictures of the README from a real run: `node screenshots.mjs report.html FUNCTION [FOLDER]` writes report-light.png and
// report-dark.png. FUNCTION is searched for and made active.
import { chromium } from "playwright-core";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const [report, name, folder = resolve(import.meta.dirname, "../../docs/images")] = process.argv.slice(2);
if (!report || !name) { throw new Error("usage: node screenshots.mjs report.html FUNCTION [FOLDER]"); }
mkdirSync(folder, { recursive: true });
const scratch = mkdtempSync(join(tmpdir(), "screenshots-"));
const context = await chromium.launchPersistentContext(scratch, {
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", headless: true, viewport: { width: 1360, height: 850 },
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
try {
    for (const theme of ["light", "dark"]) {
        const page = await context.newPage();
        await page.emulateMedia({ colorScheme: theme });
        await page.goto(`file://${resolve(report)}#v=1&p=flame,code`);
        await page.waitForSelector("html[data-ready]");
        await page.locator("#search").fill(name);
        await page.waitForTimeout(500);
        await page.locator(".navigator .row").first().dblclick();
        await page.locator("#search").fill("");
        await page.locator("#search").blur();
        // Who calls it above, and what it calls below.
        await page.getByRole("button", { name: "Both", exact: true }).first().click();
        await page.waitForFunction(() => !document.querySelector("[aria-busy=true]"));
        await page.waitForTimeout(300);
        await page.screenshot({ path: join(folder, `report-${theme}.png`) });
        await page.close();
    }
} finally {
    await context.close();
    rmSync(scratch, { recursive: true, force: true });
}
