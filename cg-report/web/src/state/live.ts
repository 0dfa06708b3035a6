// A run that goes on: how far it is, asked twice a second, and what it is told. When it has written a part, the report is that of one
// more part; what is seen stays.

import { signal } from "@preact/signals";
import type { Head } from "../data/head.ts";
import { Model } from "../data/model.ts";
import { ENDED, Ended, Pack, served } from "../data/pack.ts";
import { note, reopen } from "./store.ts";

export interface LiveFrame {
    function: string;
    /** Decimal. */
    calls: string;
    cost: string[];
}

export interface LiveThread {
    id: number;
    total: string[];
    /** The outermost first. */
    frames: LiveFrame[];
}

/** What `live.rs` tells. */
export interface LiveStatus {
    version: number;
    pid: number;
    ended: boolean;
    fault: string;
    command: string;
    tool: string;
    instrumentation: boolean;
    part: number;
    events: string[];
    totals: string[];
    threads: LiveThread[];
}

const PERIOD = 500;
/** Looks that the strip of costs goes back. */
const KEPT = 240;

/** How far the run is; undefined in reports of runs that have ended before. */
export const live = signal<LiveStatus | undefined>(undefined);
/** Whether a request is on its way. */
export const telling = signal(false);
/** Seconds between parts that are asked for without being told; 0: none are. */
export const every = signal(0);
/** Cost of the first event a second, look by look, the newest last; NaN where it is not known. */
export const rates = signal<readonly number[]>([]);

let shown = 0;
let last: { at: number; part: number; cost: number } | undefined;
let lastPart = 0;

/** What has been counted since the part began. */
export function costOf(status: LiveStatus, event = 0): number {
    const totals = status.totals.length > 0 ? [status.totals] : status.threads.map(({ total }) => total);
    return totals.reduce((sum, total) => sum + Number(total[event] ?? 0), 0);
}

async function take(status: LiveStatus) {
    const now = performance.now();
    const cost = costOf(status);
    const known = last && last.part === status.part && !status.ended && cost >= last.cost;
    rates.value = [...rates.value, known && last ? ((cost - last.cost) * 1000) / (now - last.at) : NaN].slice(-KEPT);
    last = { at: now, part: status.part, cost };
    live.value = status;
    if (status.version === shown) { return; }
    const answer = await fetch(`head/${status.version}`); // lint: from where the page comes
    // A newer one is there already: the next look tells of it.
    if (!answer.ok) { return; }
    const pack = new Pack(await answer.json() as Head, served(`data/${status.version}/`));
    await reopen(await Model.open(pack));
    shown = status.version;
    lastPart = now;
}

async function look() {
    try {
        const answer = await fetch("live"); // lint: from where the page comes
        if (!answer.ok) { throw new Error(String(answer.status)); }
        await take(await answer.json() as LiveStatus);
        if (every.value > 0 && live.value && !live.value.ended && !telling.value && performance.now() - lastPart > every.value * 1000) {
            lastPart = performance.now();
            await tell("dump");
        }
    } catch (error) {
        if (error instanceof TypeError || error instanceof Ended) {
            note.value = ENDED;
            return;
        }
        note.value = `The run cannot be followed: ${error instanceof Error ? error.message : String(error)}`;
    }
    setTimeout(() => void look(), PERIOD);
}

/** Has the run do something; whoever asks must know the token, which is the path of the page. */
export async function tell(what: "dump" | "zero" | "kill" | "instrumentation/on" | "instrumentation/off") {
    telling.value = true;
    try {
        const token = location.pathname.split("/")[1] ?? "";
        const answer = await fetch(what, { method: "POST", headers: { "X-Report-Token": token } }); // lint: from where the page comes
        if (!answer.ok) { throw new Error(`the server says ${answer.status}`); }
        await take(await answer.json() as LiveStatus);
    } catch (error) {
        note.value = `That was not done: ${error instanceof Error ? error.message : String(error)}`;
    } finally {
        telling.value = false;
    }
}

/** Follows the run whose report of this version the page shows. */
export function follow(version: number) {
    shown = version;
    lastPart = performance.now();
    void look();
}
