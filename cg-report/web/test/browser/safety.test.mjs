// Hostile profiles do nothing; damaged reports say so; nothing needs a network.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { launch, open, report, settled, VIEWS } from "./browser.mjs";

let context;
before(async () => {
    context = await launch();
    await context.route(/^(?!file:|blob:|data:)/, (route) => route.abort());
    await context.setOffline(true);
});
after(() => context.close());

test("names, commands and sources of a hostile profile run nothing", async () => {
    const page = await open(context, "hostile");
    await page.evaluate(() => {
        window.violations = [];
        document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.blockedURI + event.violatedDirective));
    });
    for (const name of ["window.PWN=7", "constructor.constructor", "HYPERLINK", "__proto__", "evil"]) {
        await page.locator("#search").fill(name.split("(")[0]);
        await settled(page);
        await page.locator(".navigator .row").first().dblclick();
        for (const view of VIEWS) {
            await page.locator(`#tab-1-${view}`).click();
            await settled(page);
        }
        await page.locator(".navigator .row").first().click({ button: "right" });
        await page.keyboard.press("Escape");
    }
    await page.locator("#search").fill("<img src=x onerror=window.PWN=9>");
    await page.goto(`${report("hostile")}#v=1&f=0000000000000000&n=${encodeURIComponent("<img src=x onerror=window.PWN=10>")}&q=%3Cscript%3E&e=__proto__&p=constructor,__proto__&x=a%3D__proto__`);
    await page.reload();
    await page.waitForSelector("html[data-ready]");
    await settled(page);
    assert.equal(await page.evaluate(() => window.PWN), undefined);
    assert.equal(await page.locator("img, iframe, object, embed, form[action], a[href]").count(), 0);
    assert.equal(await page.locator("script").count(), 6, "the first of ours, and five that are data or packed");
    assert.deepEqual((await page.evaluate(() => window.violations)) ?? [], []);
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("what hides or turns text around is visible", async () => {
    const page = await open(context, "hostile");
    const text = await page.locator(".navigator").innerText();
    assert.match(text, /evil\u27e8U\+202E\u27e9gnp/);
    assert.match(text, /bell\u2407\u241b\[31m\\xff\\xfe/);
    assert.doesNotMatch(text, /[\u202a-\u202e\u0007\u001b]/);
    await page.close();
});

test("the policy stops code and connections that are not ours", async () => {
    const page = await open(context, "exact");
    const blocked = await page.evaluate(async () => {
        const script = document.createElement("script");
        script.textContent = "window.PWN = 1";
        document.body.append(script);
        const image = document.createElement("div");
        image.innerHTML = "<img src='https://example.invalid/x.png' onerror='window.PWN = 2'>";
        document.body.append(image);
        let reached = true;
        try { await fetch("https://example.invalid/"); } catch { reached = false; }
        await new Promise((done) => setTimeout(done, 100));
        return { pwn: window.PWN, reached };
    });
    assert.deepEqual(blocked, { pwn: undefined, reached: false });
    await page.close();
});

test("a damaged report says so in a sentence", async () => {
    const text = readFileSync(join(process.env.REPORTS, "exact.html"), "utf8");
    const cases = {
        head: text.replace("\"schema\": 3", "\"schema\": }"),
        version: text.replace("\"schema\": 3", "\"schema\": 99"),
        data: text.replace(/(id="data">).{40}/, "$1AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
        program: text.replace(/(id="program">.{30000}).{8}/, "$1AAAAAAAA"),
        short: text.replace(/("names\.fn": \[\d+, )\d+/, "$14"),
    };
    for (const [name, damaged] of Object.entries(cases)) {
        assert.notEqual(damaged, text, name);
        writeFileSync(join(process.env.REPORTS, `damaged-${name}.html`), damaged);
        const page = await context.newPage();
        await page.goto(report(`damaged-${name}`));
        const line = await page.waitForSelector(".sorry");
        assert.match(await line.innerText(), /damaged/, name);
        await page.close();
    }
});

test("of a report that was cut off there is what is seen first, and what is missing is told", async () => {
    const text = readFileSync(join(process.env.REPORTS, "exact.html"), "utf8");
    const at = text.indexOf('id="rest">');
    assert.ok(at > 0);
    writeFileSync(join(process.env.REPORTS, "cut.html"), text.slice(0, at + 20));
    const page = await context.newPage();
    await page.goto(report("cut", "#v=1&p=flame,code"));
    await page.waitForSelector("html[data-ready]");
    assert.match(await page.locator(".navigator").innerText(), /main/);
    await page.locator(".navigator .row").first().dblclick();
    await page.getByText(/A part of this report is damaged/).first().waitFor();
    await page.close();
});

test("without scripts there is a table", async () => {
    const plain = await launch({ javaScriptEnabled: false });
    const page = await plain.newPage();
    await page.goto(report("exact"));
    assert.match(await page.locator("table").innerText(), /1,000\s+100\s+main/);
    await plain.close();
});
