// What of the data objects is looked at: kept in the URL like everything that is seen.
//
// Whatever a link says, only what is known here becomes state.

import { signal } from "@preact/signals";

export type Kind = "objects" | "distances" | "sharing";
export type By = "function" | "line";

const KINDS: readonly Kind[] = ["objects", "distances", "sharing"];
/** The most rows that a link opens. */
const MOST = 50;

export const kind = signal<Kind>("objects");
/** What rows of distances are of. */
export const by = signal<By>("function");
/** Rows that were turned over: objects that are open, shared lines that are closed. */
export const turned = signal<ReadonlySet<string>>(new Set());

export function turn(key: string) {
    const next = new Set(turned.value);
    if (!next.delete(key)) { next.add(key); }
    turned.value = next;
}

/** The state as a link has it; empty if it is that of the start. */
export function told(): string {
    const words = [kind.value, ...(by.value === "line" ? ["line"] : []), ...[...turned.value].slice(0, MOST)].join();
    return words === KINDS[0] ? "" : words;
}

export function restore(text: string) {
    const words = text.split(",");
    kind.value = KINDS.find((known) => known === words[0]) ?? KINDS[0];
    by.value = words[1] === "line" ? "line" : "function";
    const keys = words.filter((word) => /^(?:[0-9a-f]{16}|s\d{1,6})$/.test(word)).slice(0, MOST);
    if (keys.length !== turned.value.size || keys.some((key) => !turned.value.has(key))) { turned.value = new Set(keys); }
}
