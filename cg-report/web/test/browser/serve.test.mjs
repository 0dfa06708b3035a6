// A report that is served: it shows what the file does, fetches what it shows, and says when the server is gone.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { launch, open, rows, settled } from "./browser.mjs";

let context;
let server;
let url;
before(async () => {
    context = await launch();
    server = spawn(process.env.CG_REPORT, ["--serve", resolve(import.meta.dirname, "../../../tests/data/cpp.cg.xz"), "--mod-filename=s/.*home.user.demo.//"],
        { stdio: ["ignore", "pipe", "inherit"] });
    for await (const line of createInterface(server.stdout)) {
        url = line;
        break;
    }
});
after(async () => {
    server.kill();
    await context.close();
});

test("a served report shows what the file does, and fetches only what it shows", async () => {
    const page = await context.newPage();
    const faults = [];
    const asked = [];
    page.on("pageerror", (error) => faults.push(String(error)));
    page.on("console", (message) => { if (message.type() === "error") { faults.push(message.text()); } });
    page.on("request", (request) => asked.push(request.url()));
    await page.goto(`${url}#v=1&p=functions,flame`);
    await page.waitForSelector("html[data-ready]");
    await settled(page);
    const first = asked.length;
    assert.ok(asked.every((address) => address.startsWith(url) || address.startsWith("blob:") || address.endsWith("/favicon.ico")), asked.join(" "));
    const here = [await rows(page, "Functions"), await page.locator(".program").innerText()];
    await page.locator("#tab-1-graph").click();
    await settled(page);
    await page.locator("#tab-1-code").click();
    await settled(page);
    assert.ok(asked.length > first, "code is fetched when it is looked at");
    assert.equal(new Set(asked).size, asked.length, "and nothing twice");
    const file = await open(context, "cpp", "#v=1&p=functions,flame");
    await file.bringToFront();
    await settled(file);
    assert.deepEqual([await rows(file, "Functions"), await file.locator(".program").innerText()], here);
    await file.close();
    await page.bringToFront();
    server.kill();
    await new Promise((done) => server.once("exit", done));
    await page.keyboard.press("e");
    await page.waitForSelector(".note.fault");
    assert.equal(await page.locator("text=This view failed").count(), 0);
    assert.deepEqual(faults.filter((fault) => !/favicon|403|ERR_CONNECTION_REFUSED/.test(fault)), []);
    await page.close();
});
