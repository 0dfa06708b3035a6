// Several runs of one thing on a side of a comparison: how far they are from the one that is shown, and whether a change is no more
// than that.

import type { Numbers } from "../data/columns.ts";
import type { SideInfo } from "../data/head.ts";
import type { Side } from "../data/model.ts";
import { costs, totalOf, type Event } from "./events.ts";
import { isDiff, model } from "./store.ts";

/** Least and largest values of functions. */
interface Span {
    least: Numbers;
    most: Numbers;
}

/** Whether a side has several runs. */
export function hasRuns(at = 0): boolean {
    return (model().pack.head.sides[at]?.runs.length ?? 0) > 1;
}

/** Totals of all runs of a side. */
export function runTotals(side: SideInfo, of: Event): number[] {
    return side.runs.map((run) => totalOf(model(), run, of));
}

function span(side: Side, kind: "self" | "incl", of: Event): Span | undefined {
    if (hasRuns(side.at)) {
        // The least of a sum is no sum of least values, which formulas with negative terms would need.
        if (of.terms.length !== 1) { return undefined; }
        const [least, most] = ["least", "most"].map((end) => costs(side, `run.${kind}.${end}`, of)?.values);
        return least && most ? { least, most } : undefined;
    }
    const values = costs(side, `fn.${kind}`, of)?.values;
    return values && { least: values, most: values };
}

/** Tells of a function whether what runs of both sides cost overlaps, so that its change may be none; undefined if there is but one run of each. */
export function noise(kind: "self" | "incl", of: Event): ((f: number) => boolean) | undefined {
    const report = model();
    if (report.inlinedApart || !isDiff.value || !report.base || (!hasRuns(0) && !hasRuns(1))) { return undefined; }
    const [now, before] = [span(report.side, kind, of), span(report.base, kind, of)];
    if (!now || !before) { return undefined; }
    return (f) => now.least[f] <= before.most[f] && before.least[f] <= now.most[f];
}
