// What the tables of data objects share: places in the source, how numbers are shown.

import { digits, percent } from "../../data/format.ts";
import type { Place } from "../../data/memory.ts";
import { baseName } from "../../data/names.ts";
import { activate, model, numbering, reveal } from "../../state/store.ts";
import { goalLine } from "../machine.tsx";

/** A place in few words: the file without folders. */
export function placeText({ file, line, function: name }: Place): string {
    const at = file ? `${baseName(file)}${line > 0 ? `:${line}` : ""}` : "";
    return [at, name].filter((part) => part !== "").join(" ");
}

/** A place in full, of two lines. */
export function placeInFull({ file, line, function: name }: Place): string {
    return `${file}${line > 0 ? `:${line}` : ""}\n${name}`;
}

/** The function of a place, if the profile has it; -1 otherwise. */
function functionOf({ file, function: name }: Place): number {
    const report = model();
    if (name === "") { return -1; }
    let found = -1;
    for (let f = 0; f < report.functions; f++) {
        if (report.names[f] !== name) { continue; }
        if (file === "" || report.file(f) === file || baseName(report.file(f)) === baseName(file)) { return f; }
        found = found < 0 ? f : found;
    }
    return found;
}

/** Shows the code of a place. */
export function goTo(at: Place) {
    const f = functionOf(at);
    if (f < 0) { return; }
    activate(f);
    reveal("code");
    const file = model().files.indexOf(at.file);
    if (file >= 0 && at.line > 0) { goalLine.value = { file, line: at.line, by: "machine" }; }
}

/** Whether numbers are wanted as shares. */
export const asShares = () => numbering.value === "percent" || numbering.value === "parent";
export const share = (value: number, of: number) => (asShares() ? percent(value, of) : digits(value));
