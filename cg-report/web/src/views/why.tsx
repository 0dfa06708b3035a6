// V9: what the change from the base to the new profile consists of.

import { useMemo } from "preact/hooks";
import { compact, digits, percent, ratio, signed } from "../data/format.ts";
import { causesOf, type Cause, type Causes as Found } from "../layout/causes.ts";
import { TOP } from "../layout/expand.ts";
import type { Numbers } from "../data/columns.ts";
import type { Side } from "../data/model.ts";
import { costs } from "../state/events.ts";
import { keyOf, treeOf, ways, wholes } from "../state/paths.ts";
import { active, activate, cause as chosen, event, isDiff, model, panes, path, select, short, WHOLE } from "../state/store.ts";
import { batch } from "@preact/signals";
import { Delta, Empty, Loading, Name } from "../ui/parts.tsx";

function callsOn(side: Side, from: number, to: number): number {
    if (from < 0) { return NaN; }
    const [starts, ends, counts] = [side.now("arc.from"), side.now("arc.to"), side.now("arc.count")];
    for (let k = starts[from]; k < starts[from + 1]; k++) { if (ends[k] === to) { return counts[k]; } }
    return 0;
}

interface SideLines {
    from: Numbers;
    file: Numbers;
    line: Numbers;
    cost: Numbers;
}

function linesOfSides(...sides: Side[]): SideLines[] | undefined {
    const out: SideLines[] = [];
    for (const side of sides) {
        const [from, file, line] = ["row.from", "row.file", "row.line"].map((name) => side.column(name)?.values);
        const cost = costs(side, "row.cost", event.value)?.values;
        if (!from || !file || !line || !cost) { return undefined; }
        out.push({ from, file, line, cost });
    }
    return out;
}

/** The share of what `into` spends itself now that is spent at lines which only `from` had before. */
function movedShare([now, before]: SideLines[], into: number, from: number): number {
    const key = (side: SideLines, at: number) => `${side.file[at]} ${side.line[at]}`;
    const theirs = new Set<string>();
    for (let at = before.from[from]; at < before.from[from + 1]; at++) { if (before.line[at] > 0) { theirs.add(key(before, at)); } }
    for (let at = before.from[into]; at < before.from[into + 1]; at++) { theirs.delete(key(before, at)); }
    let [all, there] = [0, 0];
    for (let at = now.from[into]; at < now.from[into + 1]; at++) {
        all += now.cost[at];
        if (theirs.has(key(now, at))) { there += now.cost[at]; }
    }
    return all > 0 ? there / all : 0;
}

export function useCauses(): Found | undefined {
    const report = model();
    const base = report.base;
    const root = active.value === WHOLE ? TOP : active.value;
    const way = base ? ways(false, [...report.sides]) : undefined;
    const lines = base ? linesOfSides(report.side, base) : undefined;
    return useMemo(() => {
        if (!way) { return undefined; }
        const [now, before] = wholes(way, root);
        const size = Math.max(now, before);
        const delta = Math.abs(now - before);
        const least = Math.max(delta * 0.01, size * 0.0002);
        const tree = treeOf(way, root, { budget: 8000, least: least / 4 });
        return causesOf(tree, least, (side, from, to) => callsOn(report.sides[side], from, to), lines ? (into, from) => movedShare(lines, into, from) : undefined);
    }, [keyOf(way), lines !== undefined, root, event.value]);
}

/** A cause as a sentence. */
function Sentence({ cause }: { cause: Cause }) {
    const f = cause.path[cause.path.length - 1];
    const from = cause.path.length > 1 ? cause.path[cause.path.length - 2] : active.value;
    const [n1, n0] = cause.calls;
    const where = <>{from >= 0 && <><Name f={from} /> <span class="muted">{"\u2192"}</span> </>}<strong><Name f={f} /></strong></>;
    const old = model().pack.head.renamed.find((pair) => pair.f === f);
    const note = old ? <span class="muted"> (renamed from {model().name(old.from, short.value)}?)</span> : null;
    switch (cause.kind) {
        case "new": return <>{where}{note}: only in the new profile{n1 > 0 ? `, called ${digits(n1)}\u00d7` : ""}</>;
        case "gone": return <>{where}{note}: only in the base{n0 > 0 ? `, called ${digits(n0)}\u00d7` : ""}</>;
        case "moved": return <>{where}{note}: no longer called, its lines are part of the caller now (inlined)</>;
        case "more": return <>{where}{note}: called {ratio(n1, n0)} times as often ({compact(n0)} {"\u2192"} {compact(n1)})</>;
        case "fewer": return <>{where}{note}: called {ratio(n1, n0)} times as often ({compact(n0)} {"\u2192"} {compact(n1)})</>;
        case "dearer": return <>{where}{note}: spends more itself{n1 > 0 && n0 > 0 ? (n1 === n0 ? ", called as often as before" : `, called ${ratio(n1, n0)} times as often`) : ""}</>;
        case "cheaper": return <>{where}{note}: spends less itself{n1 > 0 && n0 > 0 ? (n1 === n0 ? ", called as often as before" : `, called ${ratio(n1, n0)} times as often`) : ""}</>;
    }
}

/** Shows a cause in all views. */
function follow(cause: Cause, at: number) {
    const f = cause.path[cause.path.length - 1];
    const root = active.value;
    batch(() => {
        activate(root);
        chosen.value = at;
        path.value = cause.path;
        select(f);
        panes.value = [panes.value[0] === "flame" ? "why" : panes.value[0], "flame"];
    });
}

export function Causes({ most }: { most: number }) {
    const found = useCauses();
    if (!found) { return <Loading />; }
    const size = Math.max(...found.causes.map((cause) => Math.abs(cause.delta)), 1);
    return (
        <section class="card wide causes">
            <h3 title="Causes and what is spread thin add up to the change">Why: {signed(found.delta)} {event.value.name}</h3>
            {found.causes.length === 0 && <p class="muted">{found.delta === 0 ? "Nothing changed." : "No call path holds more than 1 % of the change."}</p>}
            <ol>
                {found.causes.slice(0, most).map((cause, at) => (
                    <li key={cause.node}>
                        <button type="button" class={`cause${chosen.value === at ? " chosen" : ""}`} onClick={() => follow(cause, at)}
                            title={[...cause.path].map((f) => model().names[f]).join("\n\u2192 ")}>
                            <span class={`bar ${cause.delta > 0 ? "more" : "less"}`} style={{ width: `${(Math.abs(cause.delta) * 100) / size}%` }} />
                            <Delta now={cause.delta} before={0} text={`${cause.exact ? "" : "\u2248\u2009"}${signed(Math.round(cause.delta))}`} />
                            <span class="number muted">{percent(cause.delta, found.delta)} %</span>
                            <span class="sentence"><Sentence cause={cause} /></span>
                        </button>
                    </li>
                ))}
                {found.causes.length > most && <li class="muted">{digits(found.causes.length - most)} more, in the view Why</li>}
                <li class="thin"><span class="cause"><Delta now={found.thin} before={0} text={signed(Math.round(found.thin))} /><span class="number muted">{percent(found.thin, found.delta)} %</span><span class="sentence muted">spread thin</span></span></li>
            </ol>
        </section>
    );
}

export function Why() {
    if (!isDiff.value) { return <Empty title="Nothing to compare with"><p>A report made with <code>--base FILE</code> says why its numbers changed.</p></Empty>; }
    if (!model().hasCalls) { return <Empty title="These profiles have no calls"><p>Functions have their differences; what calls brought them is not known. Profiles made with <code>--tool=callgrind</code> have calls.</p></Empty>; }
    return (
        <div class="overview why">
            {active.value !== WHOLE && <p class="muted">Of the change below <Name f={active.value} />.</p>}
            <Causes most={200} />
        </div>
    );
}
