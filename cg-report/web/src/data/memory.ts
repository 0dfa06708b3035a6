// The data objects of a run, as its file (`mem.out`) has them: objects and their members, who misses them, streams, stack distances or
// bounds of them, lines that threads share.
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
    /** What a compiler may load ahead: so many bytes further on, and whether it is to be kept; undefined if it is not worth it. */
    prefetch: { delta: number; keep: boolean } | undefined;
}

/** Some bytes of an object, or of each of its blocks or elements. */
export interface Member {
    /** What the source calls it; empty for what is between the members, and where no structure is known. */
    name: string;
    offset: number;
    /** 0 for what is between the members. */
    bytes: number;
    /** The first of the events of objects. */
    counts: number[];
}

/** A function that misses an object. */
export interface MissedBy extends Place {
    module: string;
    counts: number[];
}

export interface DataObject extends Place {
    kind: string;
    /** What it is called in the source, if that is known; else as in the file. */
    name: string;
    bytes: number;
    blocks: number;
    peak: number;
    counts: number[];
    /** The structure that it is or consists of, if that is known: its name may be empty. */
    structure: { name: string; bytes: number } | undefined;
    /** What of the structure was missed; without one eight bytes at each offset, if it is not all at one. */
    members: Member[];
    /** The functions that miss it, those with the most misses first, where calls were recorded. */
    missedBy: MissedBy[];
    streams: Stream[];
}

export interface Distances extends Place {
    /** Accesses to lines that the thread had not accessed before. */
    first: number;
    /** By distance in lines: 0, 1, 2 and 3, 4 to 7, and so on; of bounds by the lower one. */
    bins: number[];
    /** Of bounds by the upper one; else the same as `bins`. */
    most: number[];
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
    /** What an inclusive last level would have taken out of first levels, and whether counts are exact in spite of it; empty: not asked. */
    included: { text: string; exact: boolean } | undefined;
    events: string[];
    totals: number[];
    objects: DataObject[];
    /** Bytes of a line of the first-level cache, and misses in no stream; undefined if streams were not asked for. */
    streams: { line: number; others: number } | undefined;
    /** `hits`: rows are bounds of what missed the first level, and so many accesses hit it; undefined: they are of all accesses. */
    reuse: { line: number; sample: number; hits: number | undefined; rows: Distances[] } | undefined;
    /** `counted`: also how often lines are read and written. */
    sharing: { line: number; threads: number; others: number; counted: boolean; rows: SharedLines[] } | undefined;
}

type Raw = Record<string, unknown>;

const text = (value: unknown): string => visible(typeof value === "string" ? value : "");
const number = (value: unknown): number => (typeof value === "number" ? value : 0);
const numbers = (value: unknown): number[] => (Array.isArray(value) ? value.map(number) : []);
const list = (value: unknown): Raw[] => (Array.isArray(value) ? value : []);
const spans = (value: unknown): [number, number][] => list(value).map((span) => { const [from, to] = numbers(span); return [from ?? 0, to ?? 0]; });
const sum = (counts: readonly number[]) => counts.reduce((all, count) => all + count, 0);
const part = (value: unknown): Raw | undefined => (typeof value === "object" && value !== null ? value as Raw : undefined);
const place = (raw: Raw): Place => ({ file: text(raw.file), line: number(raw.line), function: text(raw.function) });

/** What of an object was missed: by member, or by eight bytes if those say more than the object does. */
function inside(raw: Raw): Pick<DataObject, "structure" | "members"> {
    const counted = (one: Raw, bytes: number): Member => ({ name: text(one.name), offset: number(one.offset), bytes, counts: numbers(one.counts) });
    const members = part(raw.members);
    if (members) {
        return { structure: { name: text(members.type), bytes: number(members.bytes) }, members: list(members.missed).map((one) => counted(one, number(one.bytes))) };
    }
    const fields = list(raw.fields);
    return { structure: undefined, members: fields.length > 1 ? fields.map((one) => counted(one, 8)) : [] };
}

/** How a description of a run begins that says what an inclusive last level would have done to first levels. */
const INCLUDED = "Included:";

function includedOf(desc: readonly string[]): Memory["included"] {
    const line = desc.find((known) => known.startsWith(INCLUDED));
    return line === undefined ? undefined : { text: line.slice(INCLUDED.length).trim(), exact: line.endsWith("exact") && !line.endsWith("not exact") };
}

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
                bytes: number(raw.bytes), blocks: number(raw.blocks), peak: number(raw.peak_bytes), counts: numbers(raw.counts), ...inside(raw), missedBy: [], streams: [] });
        } else if ("stream" in raw) {
            const [used, hint, ...parts] = told[streams++] ?? [];
            const ahead = part(raw.prefetch);
            objects[number(raw.object)]?.streams.push({ ...place(raw), parts: parts.length > 0 ? parts : [text(raw.stream)], misses: number(raw.misses),
                lastLevel: number(raw.last_level), executions: number(raw.executions), irregular: number(raw.irregular), used: used ? Number(used) : undefined, hint: hint ?? "",
                prefetch: ahead && { delta: number(ahead.delta), keep: ahead.keep === true } });
        } else if ("reuse" in raw) {
            reuse.push({ file: text(raw.file), line: number(raw.line), function: text(raw.reuse), first: number(raw.first), bins: numbers(raw.bins), most: numbers(raw.most ?? raw.bins) });
        } else if ("missed_by" in raw) {
            objects[number(raw.object)]?.missedBy.push({ file: text(raw.file), line: 0, function: text(raw.missed_by), module: text(raw.module), counts: numbers(raw.counts) });
        } else if ("sharing" in raw) {
            const uses = list(raw.uses).map((use): SharedUse => ({ thread: number(use.thread), object: typeof use.object === "number" ? use.object : -1, offset: number(use.offset),
                read: spans(use.read), written: spans(use.written), reads: number(use.reads), writes: number(use.writes), places: list(use.places).map(place) }));
            sharing.push({ falsely: raw.sharing === "false", lines: number(raw.lines), uses,
                reads: uses.reduce((sum, use) => sum + use.reads, 0), writes: uses.reduce((sum, use) => sum + use.writes, 0) });
        }
    }
    const events = list(first.events).map(text);
    const firstLevel = levelsOf(events);
    objects.forEach((object) => {
        object.streams.sort((a, b) => b.misses - a.misses);
        object.missedBy.sort((a, b) => missesIn(b.counts, firstLevel) - missesIn(a.counts, firstLevel));
    });
    const [ofStreams, ofReuse, ofSharing] = ["streams", "reuse", "sharing"].map((key) => part(first[key]));
    return {
        command: text(first.command), included: includedOf(list(first.desc).map(text)), events, totals: numbers(first.totals), objects,
        streams: ofStreams && { line: number(ofStreams.line), others: number(ofStreams.others) },
        reuse: ofReuse && { line: number(ofReuse.line), sample: Math.max(1, number(ofReuse.sample)), hits: typeof ofReuse.hits === "number" ? ofReuse.hits : undefined, rows: reuse },
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

/** Which events are misses of the first level; the first one if none is called so. */
export function levelsOf(events: readonly string[]): number[] {
    const found = events.map((name, at) => (name === "D1mr" || name === "D1mw" ? at : -1)).filter((at) => at >= 0);
    return found.length > 0 ? found : [0];
}

/** The sum of some of its counts. */
export function missesIn(counts: readonly number[], of: readonly number[]): number {
    return of.reduce((all, at) => all + (counts[at] ?? 0), 0);
}

/** All accesses of a row of distances. */
export function accesses({ first, bins }: Pick<Distances, "first" | "bins">): number {
    return first + sum(bins);
}

/** What a cache of `2^bits` lines, all in one set, would miss of them: at least, and at most. */
export function missesOf({ first, bins, most }: Pick<Distances, "first" | "bins" | "most">, bits: number): [number, number] {
    const beyond = (of: readonly number[]) => first + sum(of.slice(bits + 1));
    return [beyond(bins), beyond(most)];
}

/** Rows of distances by something that some have in common. */
export function together(rows: readonly Distances[], key: (row: Distances) => string): Distances[] {
    const out = new Map<string, Distances>();
    for (const row of rows) {
        const all = out.get(key(row));
        if (!all) {
            out.set(key(row), { ...row, bins: [...row.bins], most: [...row.most] });
            continue;
        }
        all.first += row.first;
        row.bins.forEach((count, bin) => { all.bins[bin] = (all.bins[bin] ?? 0) + count; });
        row.most.forEach((count, bin) => { all.most[bin] = (all.most[bin] ?? 0) + count; });
        if (all.line !== row.line) { all.line = 0; }
    }
    return [...out.values()];
}
