// The loop that takes most of all without the loops in it: for the overview. Loops are looked for in functions in the order of their self costs, of which no loop has
// more, until the best one that was found has more than the next function: so none is missed.

import { effect, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { percent, ratio } from "../data/format.ts";
import { machineOf } from "../data/machine.ts";
import { top } from "../layout/order.ts";
import type { Loop } from "../layout/loops.ts";
import { event, events, plainModel, reveal, self, activate, shownTotal } from "../state/store.ts";
import { Link } from "../ui/parts.tsx";
import { loopsIn } from "./loops.tsx";
import { goalLine } from "./machine.tsx";

interface Hottest {
    f: number;
    loop: Loop;
    /** What it costs without the loops in it. */
    alone: number;
    file: number;
    line: number;
}

/** Functions that are looked at; where the first of these have no loop of more than the next one, nothing is said. */
const MOST = 60;
/** Whether what is seen first is painted. */
const late = signal(false);

/** The loop; undefined until it is known, null if there is none or it cannot be known. */
function hottest(): Hottest | null | undefined {
    const report = plainModel();
    const { addresses, jumps } = report.pack.head.sides[0];
    const ir = events.value.find((of) => of.name === "Ir");
    const own = self(report.side);
    if (!addresses || !jumps || !ir || report.side.at !== 0) { return null; }
    if (!own) { return undefined; }
    let best: Hottest | null = null as Hottest | null;
    const order = top(own, MOST + 1);
    for (const [place, f] of order.entries()) {
        if (best && own[f] <= best.alone) { return best; }
        if (place === MOST) { return null; }
        const lines = machineOf(report, report.side, f, event.value, undefined, "none");
        const counts = machineOf(report, report.side, f, ir, undefined, "none");
        if (!lines || !counts) { return undefined; }
        const loops = loopsIn(lines, counts);
        const alone = loops.map(({ cost }) => cost);
        loops.forEach(({ parent, cost }) => { if (parent >= 0) { alone[parent] -= cost; } });
        loops.forEach((loop, which) => {
            if (alone[which] <= (best?.alone ?? 0)) { return; }
            const at = lines.find((line) => line.addr === loop.addr);
            best = { f, loop, alone: alone[which], file: at?.file ?? -1, line: at?.line ?? 0 };
        });
    }
    return best;
}

const found = signal<Hottest | null | undefined>(undefined);

export function HottestLoop() {
    useEffect(() => {
        const timer = setTimeout(() => { late.value = true; }, 800);
        const stop = effect(() => { found.value = late.value ? hottest() : undefined; });
        return () => {
            clearTimeout(timer);
            stop();
        };
    }, []);
    const report = plainModel();
    const best = found.value;
    if (!best) { return null; }
    const { f, loop, file, line } = best;
    const { entries, iterations, cost } = loop;
    const name = report.files[file] ?? "";
    return (
        <section class="card wide hottest">
            <h3 title="The loop of all functions that has the highest self cost without the loops in it">Hottest loop</h3>
            <p>
                {percent(cost, shownTotal.value)} % of {event.value.name} in a loop of <Link f={f} />{line > 0 && name && <>, <button type="button" class="link" onClick={() => {
                    activate(f);
                    reveal("code");
                    goalLine.value = { file, line, by: "machine" };
                }}>{name.slice(name.lastIndexOf("/") + 1)}:{line}</button></>}
                : {ratio(iterations, entries)} iterations each of {ratio(entries, 1)} times, {ratio(cost, iterations)} {event.value.name} per iteration.
                {" "}<button type="button" class="link" onClick={() => { activate(f); reveal("loops"); }}>its loops</button>
            </p>
        </section>
    );
}
