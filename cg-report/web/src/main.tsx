// The page's program: reads the report that it stands in, and shows it.

import { effect } from "@preact/signals";
import { render } from "preact";
import { SCHEMA, type Head } from "./data/head.ts";
import { Model } from "./data/model.ts";
import { ENDED, inside, Pack, served } from "./data/pack.ts";
import { note, open, short, theme } from "./state/store.ts";
import { follow } from "./state/live.ts";
import { colouring } from "./ui/colours.ts";
import { layoutSizes, Shell } from "./ui/shell.tsx";
import { sorry } from "./ui/sorry.ts";

/** The program's style sheet; see build.mjs. */
declare const STYLE: string;

function dress() {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(STYLE);
    document.adoptedStyleSheets = [sheet];
}

function setting(name: string): string {
    try {
        return localStorage.getItem(`cg_report ${name}`) ?? "";
    } catch {
        return "";
    }
}

function keep(name: string, value: string) {
    try {
        localStorage.setItem(`cg_report ${name}`, value);
    } catch {
        // Without a place to keep settings they last as long as the page.
    }
}

/** The server goes when nobody looks any more. */
function sayAlive() {
    const timer = setInterval(() => {
        fetch("alive").catch(() => { // lint: where the page is served
            clearInterval(timer);
            note.value = ENDED;
        });
    }, 60_000);
}

/** When the browser has read all of the page. */
function read(): Promise<void> {
    if (document.readyState !== "loading") { return Promise.resolve(); }
    return new Promise((done) => { document.addEventListener("DOMContentLoaded", () => done(), { once: true }); });
}

async function start() {
    dress();
    document.documentElement.dataset.started = "yes";
    const stored = setting("theme");
    theme.value = stored === "dark" || stored === "light" ? stored : "auto";
    short.value = setting("short") !== "no";
    const side = Number(setting("side"));
    if (side >= 220 && side < 2000) { layoutSizes.value = { ...layoutSizes.value, side }; }
    effect(() => {
        const root = document.documentElement;
        if (theme.value === "auto") { root.removeAttribute("data-theme"); } else { root.dataset.theme = theme.value; }
        keep("theme", theme.value);
        keep("short", short.value ? "yes" : "no");
        keep("side", String(Math.round(layoutSizes.value.side)));
    });
    const text = (id: string) => document.getElementById(id)?.textContent ?? "";
    const head = JSON.parse(text("head")) as Head;
    if (head.schema !== SCHEMA) { throw new Error(`it has version ${head.schema}, not ${SCHEMA}`); }
    const { below, live } = document.getElementById("data")?.dataset ?? {};
    const whole = read();
    const pack = new Pack(head, below ? served(below) : inside(text("data"), async () => { await whole; return text("rest"); }));
    if (live) { follow(Number(live)); } else if (below) { sayAlive(); }
    const report = await Model.open(pack);
    await open(report);
    // What a comparison is about comes first.
    if (report.base) { colouring.value = "delta"; }
    document.title = head.title;
    const place = document.getElementById("app");
    if (place) { render(<Shell />, place); }
    document.documentElement.dataset.ready = "yes";
    // Not before everything is painted that is seen first.
    if (!below) { void whole.then(() => setTimeout(() => pack.putAway(() => [text("data"), text("rest")]), 1000)); }
}

start().catch((error) => {
    console.error(error);
    sorry(`This report is damaged and cannot be shown: ${error instanceof Error ? error.message : String(error)}.`);
});
