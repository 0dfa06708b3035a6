// The data objects of a run, as its file (`mem.out`) has them: objects, streams, stack distances, lines that threads share.
//
// Names and places are hostile, and come out visible. Counts are numbers of JavaScript.

import { visible } from "./names.ts";
import type { Pack } from "./pack.ts";

export interface Place {
    file: string;
    line: number;
    function: string;
}

export interface Stream extends Place {
    /** In words, a text for each part: `read a[0:1:200000] x3`. */
    parts: string[];
    misses: number;
    lastLevel: number;
    executions: number;
    irregular: number;
    /** Bytes of a line that are accessed until it has to be loaded again; undefined if that is not known. */
    used: number | undefined;
    hint: string;
}

export interface DataObject extends Place {
    kind: string;
    /** What it is called in the source, if that is known; else as in the file. */
    name: string;
    bytes: number;
    blocks: number;
    peak: number;
    counts: number[];
    streams: Stream[];
}

export interface Distances extends Place {
    /** Accesses to lines that the thread had not accessed before. */
    first: number;
    /** By distance in lines: 0, 1, 2 and 3, 4 to 7, and so on. */
    bins: number[];
}

export interface SharedUse {
    thread: number;
    /** An index of the objects; -1 if that is not known. */
    object: number;
    offset: number;
    read: [number, number][];
    written: [number, number][];
    reads: number;
    writes: number;
    places: Place[];
}

export interface SharedLines {
    falsely: boolean;
    lines: number;
    reads: number;
    writes: number;
    uses: SharedUse[];
}

export interface Memory {
    command: string;
    events: string[];
    totals: number[];
    objects: DataObject[];
    /** Bytes of a line of the first-level cache, and misses in no stream; undefined if streams were not asked for. */
    streams: { line: number; others: number } | undefined;
    reuse: { line: number; sample: number; rows: Distances[] } | undefined;
    /** `counted`: also how often lines are read and written. */
    sharing: { line: number; threads: number; others: number; counted: boolean; rows: SharedLines[] } | undefined;
}

type Raw = Record<string, unknown>;

const text = (value: unknown): string => visible(typeof value === "string" ? value : "");
const number = (value: unknown): number => (typeof value === "number" ? value : 0);
const numbers = (value: unknown): number[] => (Array.isArray(value) ? value.map(number) : []);
const list = (value: unknown): Raw[] => (Array.isArray(value) ? value : []);
const spans = (value: unknown): [number, number][] => list(value).map((span) => { const [from, to] = numbers(span); return [from ?? 0, to ?? 0]; });
const place = (raw: Raw): Place => ({ file: text(raw.file), line: number(raw.line), function: text(raw.function) });

/** What the file says, from its lines; those of `names` are what objects are called, those of `steps` are of streams. */
export function memoryOf(file: string, names: string, steps: string): Memory {
    const [first, ...rest] = file.split("\n").filter((line) => line !== "").map((line): Raw => JSON.parse(line));
    if (!first) { throw new Error("the data objects are damaged"); }
    const called = names.split("\n").map(visible);
    const told = steps.split("\n").map((line) => line.split("\t").map(visible));
    const objects: DataObject[] = [];
    const sharing: SharedLines[] = [];
    const reuse: Distances[] = [];
    let streams = 0;
    for (const raw of rest) {
        if ("kind" in raw) {
            objects.push({ ...place(raw), kind: text(raw.kind), name: raw.kind === "heap" ? called[objects.length] || text(raw.name) : text(raw.name),
                bytes: number(raw.bytes), blocks: number(raw.blocks), peak: number(raw.peak_bytes), counts: numbers(raw.counts), streams: [] });
        } else if ("stream" in raw) {
            const [used, hint, ...parts] = told[streams++] ?? [];
            objects[number(raw.object)]?.streams.push({ ...place(raw), parts: parts.length > 0 ? parts : [text(raw.stream)], misses: number(raw.misses),
                lastLevel: number(raw.last_level), executions: number(raw.executions), irregular: number(raw.irregular), used: used ? Number(used) : undefined, hint: hint ?? "" });
        } else if ("reuse" in raw) {
            reuse.push({ file: text(raw.file), line: number(raw.line), function: text(raw.reuse), first: number(raw.first), bins: numbers(raw.bins) });
        } else if ("sharing" in raw) {
            const uses = list(raw.uses).map((use): SharedUse => ({ thread: number(use.thread), object: typeof use.object === "number" ? use.object : -1, offset: number(use.offset),
                read: spans(use.read), written: spans(use.written), reads: number(use.reads), writes: number(use.writes), places: list(use.places).map(place) }));
            sharing.push({ falsely: raw.sharing === "false", lines: number(raw.lines), uses,
                reads: uses.reduce((sum, use) => sum + use.reads, 0), writes: uses.reduce((sum, use) => sum + use.writes, 0) });
        }
    }
    objects.forEach((object) => object.streams.sort((a, b) => b.misses - a.misses));
    const head = (key: string) => (typeof first[key] === "object" && first[key] !== null ? first[key] as Raw : undefined);
    const [ofStreams, ofReuse, ofSharing] = ["streams", "reuse", "sharing"].map(head);
    return {
        command: text(first.command), events: list(first.events).map(text), totals: numbers(first.totals), objects,
        streams: ofStreams && { line: number(ofStreams.line), others: number(ofStreams.others) },
        reuse: ofReuse && { line: number(ofReuse.line), sample: Math.max(1, number(ofReuse.sample)), rows: reuse },
        sharing: ofSharing && { line: number(ofSharing.line), threads: number(ofSharing.threads), others: number(ofSharing.others), counted: ofSharing.uncounted !== true, rows: sharing },
    };
}

const known = new WeakMap<Pack, Memory>();

export function hasMemory(pack: Pack): boolean {
    return pack.has("text.memory");
}

/** The data objects of a report; undefined until they are unpacked. */
export function memory(pack: Pack): Memory | undefined {
    const found = known.get(pack);
    if (found) { return found; }
    const [file, names, steps] = ["text.memory", "text.memory.names", "text.memory.streams"].map((name) => pack.text(name));
    if (file === undefined || names === undefined || steps === undefined) { return undefined; }
    const made = memoryOf(file, names, steps);
    known.set(pack, made);
    return made;
}

/** All accesses of a row of distances. */
export function accesses({ first, bins }: { first: number; bins: readonly number[] }): number {
    return bins.reduce((sum, count) => sum + count, first);
}

/** What a cache of `2^bits` lines, all in one set, would miss of them. */
export function missesOf({ first, bins }: { first: number; bins: readonly number[] }, bits: number): number {
    return bins.slice(bits + 1).reduce((sum, count) => sum + count, first);
}

/** Rows of distances by something that some have in common. */
export function together(rows: readonly Distances[], key: (row: Distances) => string): Distances[] {
    const out = new Map<string, Distances>();
    for (const row of rows) {
        const sum = out.get(key(row));
        if (!sum) {
            out.set(key(row), { ...row, bins: [...row.bins] });
            continue;
        }
        sum.first += row.first;
        row.bins.forEach((count, bin) => { sum.bins[bin] = (sum.bins[bin] ?? 0) + count; });
        if (sum.line !== row.line) { sum.line = 0; }
    }
    return [...out.values()];
}
