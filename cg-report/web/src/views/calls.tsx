// Callers and callees of the active function: exact counts and costs of arcs; and all that are above and below it, with how far they are.

import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { compact, digits, percent, ratio } from "../data/format.ts";
import { reachedByChains, reachedByPaths, type Reached } from "../layout/reach.ts";
import { openMenu } from "../ui/menu.tsx";
import { csv, save } from "../ui/exports.ts";
import { cost, Delta, Empty, Estimated, Loading, Name, Segments } from "../ui/parts.tsx";
import { Table } from "../ui/table.tsx";
import { costs } from "../state/events.ts";
import { keyOf, treeOf, ways, wholes } from "../state/paths.ts";
import { about, active, activate, event, inclusive, isDiff, comparison, model, select, selected, shareOf, total, WHOLE } from "../state/store.ts";
import type { Side } from "../data/model.ts";

interface Arc {
    f: number;
    count: number;
    cost: number;
    within: boolean;
}

export function arcsOf(side: Side, f: number, callers: boolean): Map<number, Arc> | undefined {
    const column = costs(side, "arc.cost", event.value)?.values;
    if (!column) { return undefined; }
    const count = side.now("arc.count");
    const within = side.now("arc.within");
    const arcs = new Map<number, Arc>();
    const take = (arc: number, other: number) => {
        arcs.set(other, { f: other, count: count[arc], cost: column[arc], within: within[arc] === 1 });
    };
    if (callers) {
        const { from, order } = side.incoming();
        const caller = side.callers();
        for (let k = from[f]; k < from[f + 1]; k++) { take(order[k], caller[order[k]]); }
    } else {
        const from = side.now("arc.from");
        const to = side.now("arc.to");
        for (let k = from[f]; k < from[f + 1]; k++) { take(k, to[k]); }
    }
    return arcs;
}

function List({ callers }: { callers: boolean }) {
    const report = model();
    const f = active.value;
    const arcs = arcsOf(report.side, f, callers);
    const diff = isDiff.value && comparison.value === "delta" && report.base !== undefined;
    const before = diff && report.base ? arcsOf(report.base, f, callers) : undefined;
    const rows = useMemo(() => {
        const ends = new Set([...(arcs?.keys() ?? []), ...(before?.keys() ?? [])]);
        const of = (end: number) => arcs?.get(end)?.cost ?? 0;
        return [...ends].sort((a, b) => of(b) - of(a) || (report.names[a] < report.names[b] ? -1 : 1));
    }, [arcs && f, event.value, before && f, callers, report.side]);
    const incl = inclusive();
    if (!arcs || !incl) { return <Loading />; }
    const whole = incl[f];
    const of = shareOf(total.value, whole);
    const none: Arc = { f: WHOLE, count: 0, cost: 0, within: false };
    const at = (end: number) => arcs.get(end) ?? none;
    const old = (end: number) => before?.get(end) ?? none;
    const sum = rows.reduce((all, end) => all + (at(end).within ? 0 : at(end).cost), 0);
    const calls = rows.reduce((all, end) => all + at(end).count, 0);
    return (
        <section class="half">
            <h3>{callers ? "Callers" : "Callees"}</h3>
            <Table label={callers ? "Callers" : "Callees"} rows={rows} onSelect={select} onActivate={activate} onMenu={openMenu}
                selected={selected.value === WHOLE ? undefined : selected.value}
                empty={callers ? "Nothing is known to call it." : "It calls nothing that the profile knows."}
                columns={[
                    { id: "cost", title: "Incl.", width: 88, hint: callers ? "What calls from there cost" : "What calls of it cost",
                        cell: (end) => (at(end).within ? "\u21bb" : `${about.value}${cost(at(end).cost, of, at(end).count)}`),
                        bar: (end) => (at(end).within ? 0 : at(end).cost / whole),
                        full: (end) => (at(end).within
                            ? "a call within a cycle: its inclusive cost would be counted twice"
                            : `${about.value}${digits(at(end).cost)} ${event.value.name}, ${percent(at(end).cost, whole)} % of the active function`) },
                    ...(diff ? [{ id: "delta", title: "\u0394", width: 84, cell: (end: number) => <Delta now={at(end).cost} before={old(end).cost} /> }] : []),
                    { id: "calls", title: "Calls", width: 66, cell: (end) => compact(at(end).count), full: (end) => digits(at(end).count) },
                    { id: "each", title: "Per call", width: 72, cell: (end) => (at(end).within ? "" : `${about.value}${ratio(at(end).cost, at(end).count)}`) },
                    { id: "name", title: "Function", text: true, cell: (end) => <Name f={end} /> },
                ]}
                footer={<><span>{digits(rows.length)}</span><span>{digits(calls)} calls, {about.value}{percent(sum, of)} %</span></>} />
        </section>
    );
}

/** All that is above the active function, or below it. */
export function useReached(callers: boolean): { rows: Reached[]; whole: number } | undefined {
    const report = model();
    const { side } = report;
    const way = ways(callers, [side]);
    const root = active.value;
    return useMemo(() => {
        if (!way) { return undefined; }
        const whole = wholes(way, root)[0];
        const chains = way.chains?.[0];
        const rows = chains ? reachedByChains(chains, root, callers)
            : reachedByPaths(treeOf(way, root, { budget: 20_000, least: whole * 1e-5 }), report.functions, (f, each) => next(side, f, callers, each));
        const size = ({ cost: own }: Reached) => (Number.isNaN(own) ? -1 : own);
        rows.sort((a, b) => size(b) - size(a) || a.nearest - b.nearest || (report.names[a.f] < report.names[b.f] ? -1 : 1));
        if (event.value.spread) { rows.forEach((row) => { row.exact = false; }); }
        return { rows: rows.filter(({ f }) => f !== root), whole };
    }, [keyOf(way), side, root, event.value, callers]);
}

/** Direct callers or callees. */
function next(side: Side, f: number, callers: boolean, each: (g: number) => void) {
    if (callers) {
        const { from, order } = side.incoming();
        const caller = side.callers();
        for (let k = from[f]; k < from[f + 1]; k++) { each(caller[order[k]]); }
        return;
    }
    const [from, to] = [side.now("arc.from"), side.now("arc.to")];
    for (let k = from[f]; k < from[f + 1]; k++) { each(to[k]); }
}

/** How far a function is: on the shortest way, and on the longest one if that is known and another. */
export function distance({ nearest, farthest }: Reached): string {
    return Number.isNaN(farthest) || farthest <= nearest ? String(nearest) : `${nearest}\u2013${farthest}`;
}

function Reach({ callers }: { callers: boolean }) {
    const found = useReached(callers);
    const own = inclusive();
    if (!found || !own) { return <Loading />; }
    const { rows, whole } = found;
    const exact = rows.every((row) => row.exact || Number.isNaN(row.cost));
    const counted = rows.some((row) => !Number.isNaN(row.calls));
    const title = callers ? "All callers" : "All callees";
    const of = shareOf(total.value, whole);
    const place = rows.findIndex((row) => row.f === selected.value);
    return (
        <section class="half">
            <h3>{title} <Estimated exact={exact} /></h3>
            <Table saves={true} label={title} rows={rows.map((_, at) => at)} selected={place < 0 ? undefined : place}
                onSelect={(at) => select(rows[at].f)} onActivate={(at) => activate(rows[at].f)} onMenu={(at, x, y) => openMenu(rows[at].f, x, y)}
                empty={callers ? "Nothing is known to call it." : "It calls nothing that the profile knows."}
                columns={[
                    { id: "cost", title: "Incl.", width: 96, hint: callers ? "What of the active function's cost came through there" : "What it cost while the active function ran",
                        cell: (at) => (Number.isNaN(rows[at].cost) ? "" : `${rows[at].exact ? "" : "\u2248\u2009"}${cost(rows[at].cost, of)}`),
                        bar: (at) => (rows[at].cost || 0) / whole,
                        full: (at) => (Number.isNaN(rows[at].cost) ? "on no way that costs enough to be looked at"
                            : `${digits(Math.round(rows[at].cost))} ${event.value.name}, ${percent(rows[at].cost, whole)} % of the active function`) },
                    ...(callers ? [] : [{ id: "self", title: "Self", width: 84, hint: "What it spent itself while the active function ran",
                        cell: (at: number) => (Number.isNaN(rows[at].own) ? "" : `${rows[at].exact ? "" : "\u2248\u2009"}${cost(rows[at].own, of)}`),
                        full: (at: number) => (Number.isNaN(rows[at].own) ? "" : digits(Math.round(rows[at].own))) }]),
                    { id: "steps", title: "Distance", width: 72, hint: "Calls on the shortest way, and on the longest one", cell: (at) => distance(rows[at]) },
                    ...(counted ? [{ id: "calls", title: "Calls", width: 66, hint: callers ? "Calls of the active function that came through there" : "Calls while the active function ran",
                        cell: (at: number) => compact(rows[at].calls), full: (at: number) => digits(rows[at].calls) }] : []),
                    { id: "name", title: "Function", text: true, cell: (at) => <Name f={rows[at].f} /> },
                ]}
                footer={<><span>{digits(rows.length)}</span>
                    <button type="button" class="quiet" title="Save these rows as CSV" onClick={() => {
                        const lines = rows.map((row) => [model().names[row.f], row.nearest, row.farthest, Math.round(row.cost), row.exact ? "exact" : "estimated"]);
                        save("reach.csv", new Blob([csv(["function", "shortest", "longest", event.value.name, "figures"], lines)], { type: "text/csv" }));
                    }}>CSV</button></>} />
        </section>
    );
}

const reach = signal<"direct" | "all">("direct");

export function Calls() {
    if (!model().hasCalls) {
        return <Empty title="This profile has no calls"><p>It was made with <code>--tool=cachegrind</code>. Profiles made with <code>--tool=callgrind</code> have them.</p></Empty>;
    }
    if (active.value === WHOLE) {
        return <Empty title="Choose a function"><p>Double-click a function, or press Enter on it, to see who calls it and whom it calls.</p></Empty>;
    }
    return (
        <div class="view">
            <div class="bar-tools">
                <Segments label="Which" value={reach.value} onChange={(value) => { reach.value = value; }}
                    options={[["direct", "Direct", "Who calls it, and whom it calls"], ["all", "All", "Everybody above it and below it, with distances"]]} />
            </div>
            {reach.value === "direct" ? <div class="split"><List callers={true} /><List callers={false} /></div>
                : <div class="split"><Reach callers={true} /><Reach callers={false} /></div>}
        </div>
    );
}
