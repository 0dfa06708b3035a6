// What parts are called: by what tells them apart, which may be processes, numbers, threads or files.

import type { Head, PartInfo } from "./head.ts";
import { baseName, visible } from "./names.ts";

export type PartsBy = "part" | "thread" | "process" | "file";

/** Some parts that belong together. */
export interface PartGroup {
    name: string;
    parts: number[];
}

const several = (head: Head, of: (part: PartInfo) => unknown) => new Set(head.parts.map(of)).size > 1;

function fileOf(head: Head, part: PartInfo): string {
    return fileName(head, part.input);
}

function fileName(head: Head, input: number): string {
    const { inputs } = head.sides[0];
    const name = visible(inputs[input]?.name ?? "");
    const short = baseName(name);
    return inputs.filter((input) => baseName(visible(input.name)) === short).length > 1 ? name : short;
}

/** What a process is called: by its program, if that is known. */
function processOf({ pid, program }: PartInfo): string {
    return program ? `${visible(program)} ${pid ?? "?"}` : `process ${pid ?? "?"}`;
}

/** The name of each part; no two have the same. */
export function partNames(head: Head): string[] {
    const names = head.parts.map((part) => [
        several(head, ({ pid }) => pid) ? processOf(part) : "",
        several(head, ({ number }) => number) ? `part ${part.number ?? "?"}` : "",
        several(head, ({ thread }) => thread) ? `thread ${part.thread ?? "?"}` : "",
    ].filter((word) => word).join(" \u00b7 "));
    return names.map((name, at) => {
        if (name && names.indexOf(name) === names.lastIndexOf(name)) { return name; }
        const part = head.parts[at];
        const alike = head.parts.filter((other, place) => names[place] === name && other.input === part.input);
        const words = [name, several(head, ({ input }) => input) ? fileOf(head, part) : "", alike.length > 1 ? `no. ${alike.indexOf(part) + 1}` : ""];
        return words.filter((word) => word).join(" \u00b7 ");
    });
}

/** Ways in which the parts of a report can be put together: those that make several groups. */
export function waysOf(head: Head): PartsBy[] {
    const ways: PartsBy[] = ["part"];
    for (const by of ["thread", "process", "file"] as const) {
        const count = groupsOf(head, by).length;
        if (count > 1 && count < head.parts.length) { ways.push(by); }
    }
    return ways;
}

/** The parts as groups, in the order of their first ones. */
export function groupsOf(head: Head, by: PartsBy): PartGroup[] {
    if (by === "part") { return partNames(head).map((name, at) => ({ name, parts: [at] })); }
    const groups = new Map<string, PartGroup>();
    const threads = several(head, ({ pid }) => pid);
    head.parts.forEach((part, at) => {
        const process = processOf(part);
        const name = by === "file" ? fileOf(head, part) : by === "process" ? process : `${threads ? `${process} \u00b7 ` : ""}thread ${part.thread ?? "?"}`;
        const known = groups.get(name);
        if (known) { known.parts.push(at); } else { groups.set(name, { name, parts: [at] }); }
    });
    return [...groups.values()];
}

/** The parts of each file. */
export function partsOfFiles(head: Head): PartGroup[] {
    return head.sides[0].inputs.map((_, input) => ({ name: fileName(head, input), parts: head.parts.flatMap((part, at) => (part.input === input ? [at] : [])) }));
}

/** Parts that are shown where nothing else is said; none stands for all. */
export function partsAtFirst(head: Head): number[] {
    return head.separate ? partsOfFiles(head)[0]?.parts ?? [] : [];
}
