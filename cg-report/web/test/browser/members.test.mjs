// What is inside objects, who misses them, bounds of distances and hints, beside what `mem_annotate --json` says of the same files.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { after, before, test } from "node:test";
import { launch, open, rows, settled, shutOut } from "./browser.mjs";

let context;
before(async () => { context = await launch(); });
after(() => context.close());

const said = (name) => JSON.parse(execFileSync(process.env.MEM_ANNOTATE, ["--json", "--threshold=0", resolve(`../tests/data/${name}.mem.xz`)], { maxBuffer: 1 << 28 }).toString());
const number = (text) => Number(text.replaceAll(",", "").replace("\u2212", "-"));
/** A count, or its bounds. */
const numbers = (text) => { const both = text.split("..").map(number); return both.length > 1 ? both : [both[0], both[0]]; };
const OBJECTS = '[aria-label="Data objects"]';
const row = (page, name) => page.locator(`${OBJECTS} .row`).filter({ has: page.locator(".object", { hasText: new RegExp(`^${name}$`) }) });

/** The rows below an object, which is opened by keyboard. */
async function opened(page, name) {
    await row(page, name).click();
    await page.keyboard.press("ArrowRight");
    await settled(page);
    const all = await rows(page, "Data objects");
    const at = all.findIndex(([first]) => first.split(" ")[0] === name);
    const levels = await page.evaluate((table) => [...document.querySelectorAll(`${table} .row`)].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((one) => one.getAttribute("aria-level")), OBJECTS);
    const end = levels.findIndex((level, place) => place > at && level === "1");
    return all.slice(at + 1, end < 0 ? undefined : end);
}

test("objects open into members, and streams with their hints, with the numbers of mem_annotate", async () => {
    const page = await open(context, "members", "#v=1&p=memory,overview&num=absolute");
    await settled(page);
    const { objects, events } = said("members");
    const columns = (counts) => events.map((_, at) => counts[at]);
    for (const name of ["particles", "heap@members.c:43"]) {
        const object = objects.find((one) => one.name === name);
        const shown = await opened(page, name.startsWith("heap") ? "node" : name);
        const { missed, bytes } = object.members;
        assert.ok(missed.length > 1);
        assert.deepEqual(shown.slice(0, missed.length).map((cells) => cells[0]), missed.map((member) => `.${member.name}`));
        assert.deepEqual(shown.slice(0, missed.length).map((cells) => cells.slice(-events.length).map(number)), missed.map(({ counts }) => columns(counts)));
        assert.deepEqual(shown.slice(0, missed.length).map((cells) => number(cells[1])), missed.map(({ counts }) => counts[events.indexOf("D1mr")] + counts[events.indexOf("D1mw")]));
        assert.deepEqual(shown.slice(0, missed.length).map((cells) => cells[5]), missed.map((member) => `${member.offset}\u2013${member.offset + member.bytes - 1} of ${bytes}`));
        const streams = shown.slice(missed.length);
        const ahead = object.streams.sort((a, b) => b.misses - a.misses).map(({ prefetch }) => (prefetch ? prefetch.delta : ""));
        assert.deepEqual(streams.map((cells) => (cells[3] === "" ? "" : number(cells[3].replace(/^\+| B$/g, "")))), ahead);
        assert.ok(ahead.some((delta) => delta !== ""), "there is a hint");
    }
    const told = [];
    for (const cell of await page.locator(`${OBJECTS} [role=gridcell]:nth-child(4)`).filter({ hasText: / B$/ }).all()) {
        await cell.hover();
        told.push(await cell.getAttribute("title"));
    }
    assert.ok(told.some((text) => /worth a prefetch 1,?\d+ bytes ahead, used once/.test(text) && text.includes("nta")), told.join("\n"));
    const note = await page.locator(".hint").first().innerText();
    assert.match(note, /^\u2248 I1 and D1 held \d+ of [\d,]+ lines that LL gave up/, "counts are near, not exact");
    assert.ok(note.includes(said("members").desc.find((line) => line.startsWith("Included:")).slice(18)));
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("without a structure objects open into the bytes that are missed", async () => {
    const page = await open(context, "members", "#v=1&p=memory,overview&num=absolute");
    await settled(page);
    const { objects } = said("members");
    const object = objects.find(({ name, fields, members }) => members === null && fields.length > 5 && /^\w+$/.test(name) && objects.filter((other) => other.name === name).length === 1);
    await page.locator(OBJECTS).press("End");
    await settled(page);
    for (let at = 0; await row(page, object.name).count() === 0 && at < 60; at++) {
        await page.locator(OBJECTS).press("PageUp");
        await settled(page);
    }
    // It may be the last row in sight: what it opens into is below.
    await row(page, object.name).click();
    for (const key of ["ArrowRight", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown"]) {
        await page.keyboard.press(key);
        await settled(page);
    }
    const all = await rows(page, "Data objects");
    const shown = all.slice(all.findIndex(([name]) => name === object.name) + 1).filter(([, , kind]) => kind === "bytes" || kind === "variable");
    const end = shown.findIndex(([, , kind]) => kind === "variable");
    shown.splice(end < 0 ? shown.length : end);
    const fields = shown.filter(([name]) => name.startsWith("bytes "));
    assert.deepEqual(fields.map(([name]) => name), object.fields.slice(0, fields.length).map(({ offset }) => `bytes ${offset} to ${offset + 7}`));
    assert.ok(fields.length > 3);
    await page.close();
});

test("objects open into the functions that miss them, which lead to their code", async () => {
    const page = await open(context, "missed", "#v=1&p=memory,overview&num=absolute");
    await settled(page);
    const { objects, events } = said("missed");
    const missed = objects.find(({ name }) => name === "particles").missed_by;
    const first = ({ counts }) => counts[events.indexOf("D1mr")] + counts[events.indexOf("D1mw")];
    assert.ok(missed.length > 1);
    const shown = (await opened(page, "particles")).filter(([name]) => name.startsWith("in "));
    assert.deepEqual(shown.map(([name, count]) => [name, number(count)]), missed.sort((a, b) => first(b) - first(a)).map((by) => [`in ${by.function}`, first(by)]));
    await page.locator(`${OBJECTS} .row`).filter({ hasText: "in weigh" }).dblclick();
    await settled(page);
    assert.equal(await page.locator(".crumb-bar .here").innerText(), "weigh");
    assert.equal(await page.locator(".pane").nth(1).locator("[role=tab][aria-selected=true]").innerText(), "Code");
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("bounds of distances are two figures each, those of mem_annotate", async () => {
    const page = await open(context, "members", "#v=1&p=memory,overview&num=absolute&mem=distances");
    await settled(page);
    const { distances } = said("members");
    // 64 bytes a line: 32 KiB, 256 KiB, 1 MiB and 8 MiB are 9, 12, 14 and 17 bits.
    const beyond = ({ first }, bins, bits) => bins.slice(bits + 1).reduce((all, count) => all + count, first);
    const bounds = (one) => [9, 12, 14, 17].map((bits) => [beyond(one, one.bins, bits), beyond(one, one.bins_at_most, bits)]);
    const told = (list) => list.map((one) => JSON.stringify([bounds(one), one.first])).sort();
    for (const [kind, all] of [["functions", distances.functions], ["lines", distances.lines]]) {
        if (kind === "lines") { await page.getByRole("button", { name: "Lines", exact: true }).click(); }
        await settled(page);
        const seen = (await rows(page, "Distances")).map((cells) => JSON.stringify([cells.slice(0, 4).map(numbers), number(cells[4])]));
        assert.ok(seen.length > 10);
        const known = told(all);
        for (const one of seen) { assert.ok(known.includes(one), `${kind}: ${one}`); }
        assert.deepEqual(seen.map((one) => JSON.parse(one)[0][0][1]), all.map((one) => bounds(one)[0][1]).sort((a, b) => b - a).slice(0, seen.length), "the most first");
        assert.ok(seen.some((one) => JSON.parse(one)[0].some(([least, most]) => least !== most)), "some are apart");
    }
    const foot = await page.locator(".foot").filter({ hasText: "hit D1" }).innerText();
    assert.ok(foot.includes(`${distances.hits_of_d1.toLocaleString("en-US")} accesses hit D1`) && foot.includes(`${distances.accesses.toLocaleString("en-US")} misses of D1`), foot);
    assert.equal(await page.locator(".curve .whole .room").count(), 1, "the room between both");
    // What is saved has both.
    const [download] = await Promise.all([page.waitForEvent("download"), page.locator(".pane").first().getByRole("button", { name: "JSON" }).click()]);
    const saved = JSON.parse(readFileSync(await download.path(), "utf8"));
    const both = (line) => JSON.stringify([["32 KiB", "256 KiB", "1 MiB", "8 MiB"].map((size) => [line[size], line[`${size} at most`]]), line.First]);
    assert.deepEqual(saved.map(both).sort(), told(distances.lines), "all of them");
    assert.deepEqual(page.faults, []);
    await page.close();
});

test("a link says what of the data objects is seen", async () => {
    const page = await open(context, "members", "#v=1&p=memory,overview");
    await settled(page);
    const shown = await opened(page, "particles");
    await page.getByRole("button", { name: "Distances" }).click();
    await page.getByRole("button", { name: "Lines", exact: true }).click();
    await settled(page);
    const again = await open(context, "members", new URL(page.url()).hash);
    await settled(again);
    assert.equal(await again.locator(".pane").first().locator('[aria-label="Rows"] [aria-pressed=true]').innerText(), "Lines");
    await again.getByRole("button", { name: "Objects" }).click();
    await settled(again);
    assert.deepEqual((await rows(again, "Data objects")).slice(1, shown.length + 1), shown, "what was open is open");
    assert.match(new URL(again.url()).hash, /mem=objects%2Cline%2C[0-9a-f]{16}$/);
    await page.close();
    await again.close();
});

test("hostile names of objects, members, functions and types run nothing and hide nothing", async () => {
    for (const mem of ["objects", "distances", `${encodeURIComponent("<script>,line,__proto__,s99999999,constructor")}`]) {
        const page = await open(context, "hostile-memory", `#v=1&p=memory,overview&mem=${mem}`);
        await page.evaluate(() => {
            window.violations = [];
            document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.blockedURI + event.violatedDirective));
        });
        await settled(page);
        if (mem !== "distances") {
            await page.locator(`${OBJECTS} .row`).first().click();
            await page.keyboard.press("ArrowRight");
            await settled(page);
            const text = (await rows(page, "Data objects")).flat().join("\n");
            for (const part of [".<img src=x", ".__proto__", "in <img", "\u22129,007,199,254,740,991 B"]) { assert.ok(text.includes(part), `${part} in ${text}`); }
            assert.ok(text.includes("\u27e8U+202E\u27e9") && !/[\u202e\u0007]/.test(text), text);
        } else {
            assert.match((await rows(page, "Distances"))[0].join(" "), /<img/);
        }
        assert.match(await page.locator(".view").first().innerText(), mem === "distances" ? /7 accesses hit D1/ : /\u2248 <img/);
        assert.equal(await page.evaluate(() => window.PWN), undefined);
        assert.equal(await page.locator("img, iframe, object, embed, a[href]").count(), 0);
        assert.deepEqual(await page.evaluate(() => window.violations), []);
        assert.deepEqual(page.faults, []);
        await page.close();
    }
});

for (const theme of ["light", "dark"]) {
    test(`nobody is shut out of members, functions and bounds in the ${theme} theme`, async () => {
        for (const [name, mem] of [["members", "objects"], ["members", "distances"], ["missed", "objects"]]) {
            const page = await open(context, name, `#v=1&p=memory,overview&mem=${mem}`);
            await page.emulateMedia({ colorScheme: theme });
            await settled(page);
            if (mem === "objects") { await opened(page, "particles"); } else { await page.locator('[aria-label="Distances"] .row').first().click(); }
            await settled(page);
            assert.deepEqual(await shutOut(page), [], `${name} ${mem} ${theme}`);
            await page.close();
        }
    });
}
