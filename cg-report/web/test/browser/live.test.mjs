// A run that goes on, in the page: parts arrive, what is seen stays, numbers are those of the profile in one piece; and its end.
// Needs grind and gcc.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { launch, open, rows, settled } from "./browser.mjs";

const GRIND = process.env.GRIND;
const missing = !GRIND || !existsSync(GRIND) ? "grind is not built" : !existsSync("/usr/bin/gcc") ? "there is no gcc" : false;
if (missing && process.env.CI) { throw new Error(missing); }

const PROGRAM = `
#include <unistd.h>
static volatile unsigned sink;
__attribute__((noinline)) void leaf(unsigned n) { while (n--) sink += n; }
__attribute__((noinline)) void walk(unsigned n) { for (unsigned i = 0; i < n; i++) leaf(100); }
int main(void) { char byte; while (read(0, &byte, 1) == 1) walk(200); return 0; }
`;

let context;
let folder;
const children = [];
before(async () => {
    context = await launch();
    folder = mkdtempSync(join(process.env.REPORTS ?? tmpdir(), "live-"));
    if (missing) { return; }
    writeFileSync(join(folder, "prog.c"), PROGRAM);
    execFileSync("gcc", ["-O1", "-g", "-static", "-o", join(folder, "prog"), join(folder, "prog.c")]);
});
after(async () => {
    for (const child of children) { child.kill("SIGKILL"); }
    await context.close();
});

function grind(name) {
    const child = spawn(GRIND, ["-q", "--tool=callgrind", `--callgrind-out-file=${name}`, join(folder, "prog")],
        { cwd: folder, env: { ...process.env, XDG_RUNTIME_DIR: folder }, stdio: ["pipe", "ignore", "inherit"] });
    children.push(child);
    return child;
}

async function follow() {
    let pid;
    for (let look = 0; look < 200 && !pid; look++) {
        pid = readdirSync(folder).map((name) => /^grind-callgrind-(\d+)$/.exec(name)?.[1]).find(Boolean);
        await new Promise((done) => setTimeout(done, 50));
    }
    const server = spawn(process.env.CG_REPORT, ["--live", pid], { cwd: folder, env: { ...process.env, XDG_RUNTIME_DIR: folder }, stdio: ["ignore", "pipe", "inherit"] });
    children.push(server);
    for await (const line of createInterface(server.stdout)) { return { server, url: line }; }
    throw new Error("no address");
}

async function watched(url) {
    const page = await context.newPage();
    page.setDefaultTimeout(20000);
    page.faults = [];
    page.on("pageerror", (error) => page.faults.push(String(error)));
    page.on("console", (message) => { if (message.type() === "error" && !/favicon|403/.test(message.text())) { page.faults.push(message.text()); } });
    await page.goto(url);
    await page.waitForSelector("html[data-ready]");
    await page.waitForSelector("#tab-0-live");
    return page;
}

test("a run is followed to its end: parts, selection, numbers", { skip: missing }, async () => {
    const whole = grind("whole.out");
    whole.stdin.end("xxxx");
    await new Promise((done) => whole.once("exit", done));
    execFileSync(process.env.CG_REPORT, ["-o", join(process.env.REPORTS, "whole.html"), join(folder, "whole.out")]);
    const run = grind("live.out");
    const { url } = await follow();
    const page = await watched(`${url}#v=1&p=live,flame`);
    const said = () => page.locator("#pane-0 .live [role=status]").innerText();
    await page.waitForFunction(() => /1 part in this report; part 2 is being counted/.test(document.querySelector(".live [role=status]")?.textContent ?? ""));
    assert.match(await page.locator(".live-stack").innerText(), /main/);
    await page.locator("#search").fill("/^main$/");
    await page.waitForFunction(() => document.querySelectorAll(".navigator .row").length === 1);
    await page.locator(".navigator .row").first().dblclick();
    await page.locator("#search").fill("");
    for (let part = 2; part <= 4; part++) {
        run.stdin.write("x");
        await new Promise((done) => setTimeout(done, 300));
        await page.getByRole("button", { name: "Dump", exact: true }).click();
        await page.waitForFunction((parts) => new RegExp(`${parts} parts in this report`).test(document.querySelector(".live [role=status]")?.textContent ?? ""), part);
        assert.equal(await page.locator(".crumb-bar .here").innerText(), "main", "what is active stays");
    }
    await page.locator("#tab-1-parts").click();
    await settled(page);
    assert.equal(await page.locator(".slice").count(), 4);
    await page.locator("#tab-1-flame").click();
    run.stdin.end("x");
    await page.waitForFunction(() => /The run has ended; the report is whole. 5 parts/.test(document.querySelector(".live [role=status]")?.textContent ?? ""));
    assert.equal(await page.getByRole("button", { name: "Dump", exact: true }).count(), 0);
    await page.getByRole("button", { name: "123" }).click();
    await settled(page);
    const file = await open(context, "whole");
    await file.getByRole("button", { name: "123" }).click();
    await settled(file);
    // Inclusive and self cost, calls, name.
    const [live, one] = [await rows(page, "Functions"), await rows(file, "Functions")];
    // How many are in the document is a matter of the room that there is.
    const count = Math.min(live.length, one.length);
    assert.ok(count > 10);
    assert.deepEqual(live.slice(0, count), one.slice(0, count));
    assert.ok((await said()).includes("ended"));
    assert.deepEqual([...page.faults, ...file.faults], []);
    await file.close();
    await page.close();
});

test("ending a program is asked twice, and the server's own end is told", { skip: missing }, async () => {
    const run = grind("killed.out");
    const { server, url } = await follow();
    const [page, second] = [await watched(`${url}#v=1&p=live,flame`), await watched(`${url}#v=1&p=live,flame`)];
    await page.bringToFront();
    await page.getByRole("button", { name: "Kill \u2026" }).click();
    await page.getByRole("button", { name: "No", exact: true }).click();
    assert.equal(run.exitCode, null);
    await page.getByRole("button", { name: "Instrumentation off" }).click();
    await page.waitForFunction(() => /counts nothing at the moment/.test(document.querySelector(".live [role=status]")?.textContent ?? ""));
    await second.bringToFront();
    await second.waitForFunction(() => /counts nothing at the moment/.test(document.querySelector(".live [role=status]")?.textContent ?? ""));
    await page.bringToFront();
    await page.getByRole("button", { name: "Kill \u2026" }).click();
    await page.getByRole("button", { name: "End the program, really" }).click();
    await page.waitForFunction(() => /The run has ended/.test(document.querySelector(".live [role=status]")?.textContent ?? ""));
    server.kill();
    await page.waitForSelector(".note");
    assert.match(await page.locator(".note").innerText(), /cg_report has ended/);
    assert.deepEqual(page.faults.filter((fault) => !/ERR_(CONNECTION_REFUSED|EMPTY_RESPONSE|CONNECTION_RESET|SOCKET_NOT_CONNECTED)/.test(fault)), []);
    await page.close();
    await second.close();
});
