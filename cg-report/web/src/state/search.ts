// Which functions a search finds. Regular expressions run in a worker, which is ended if one takes too long.

import { signal } from "@preact/signals";
import type { Numbers } from "../data/columns.ts";
import type { Lines, Model } from "../data/model.ts";
import { startWorker } from "../work.ts";
import type { Query } from "./query.ts";

interface Costs {
    self: Numbers | undefined;
    incl: Numbers | undefined;
    calls: Numbers;
    total: number;
}

export const searchFault = signal("");

/** Leaves what has a word in its line. */
export function narrow(mask: Uint8Array, { text, start }: Lines, word: string) {
    if (word === "") { return; }
    let line = 0;
    for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, start[line])) {
        const passed = line;
        while (start[line + 1] <= at) { line += 1; }
        mask.fill(0, passed, line);
        // One place in a line is enough.
        line += 1;
        if (line >= mask.length) { return; }
    }
    mask.fill(0, line);
}

/** For each function 1 if the search finds it; null while that is not known. */
export function matching(model: Model, query: Query, costs: Costs): Uint8Array | null {
    const mask = new Uint8Array(model.functions).fill(1);
    const files = query.file.map((part) => model.files.map((file) => file.toLowerCase().includes(part)));
    const objects = query.object.map((part) => model.objects.map((object) => object.toLowerCase().includes(part)));
    const fileOf = model.fileOf;
    const objectOf = model.objectOf;
    for (const word of query.words) { narrow(mask, model.lowered(), word); }
    const wanted = files.length + objects.length + query.space.length > 0;
    for (let f = 0; wanted && f < mask.length; f++) {
        if (!mask[f]) { continue; }
        for (const list of files) { if (!list[fileOf[f]]) { mask[f] = 0; } }
        for (const list of objects) { if (!list[objectOf[f]]) { mask[f] = 0; } }
        for (const part of query.space) { if (!model.namespace(f).toLowerCase().includes(part)) { mask[f] = 0; } }
    }
    for (const { of, above, value, percent } of query.bounds) {
        const column = costs[of];
        if (!column) { return null; }
        const bound = percent ? (costs.total * value) / 100 : value;
        for (let f = 0; f < mask.length; f++) {
            if (above ? column[f] <= bound : column[f] >= bound) { mask[f] = 0; }
        }
    }
    for (const pattern of query.patterns) {
        const known = byPattern(model, pattern);
        if (!known) { return null; }
        for (let f = 0; f < mask.length; f++) { mask[f] &= known[f]; }
    }
    return mask;
}

const LIMIT = 1000;
const finished = signal(0);
const results = new Map<string, Uint8Array>();
let running: { pattern: string; stop: () => void } | undefined;

function byPattern(model: Model, pattern: string): Uint8Array | undefined {
    void finished.value;
    const known = results.get(pattern);
    if (known || running?.pattern === pattern) { return known; }
    running?.stop();
    const done = (mask: Uint8Array, fault: string) => {
        clearTimeout(timer);
        job.stop();
        running = undefined;
        // A few are enough: this is for going back.
        if (results.size > 20) { results.clear(); }
        results.set(pattern, mask);
        searchFault.value = fault;
        finished.value += 1;
    };
    const job = startWorker({ kind: "search", pattern, names: model.names }, (answer) => done(answer as Uint8Array, ""));
    const nothing = new Uint8Array(model.functions);
    const timer = setTimeout(() => done(nothing, "this expression takes too long"), LIMIT);
    running = { pattern, stop: () => { clearTimeout(timer); job.stop(); } };
    return undefined;
}
