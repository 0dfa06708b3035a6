// V2: objects, their files, namespaces or classes, and functions, with sums of self cost.

import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { digits, percent } from "../data/format.ts";
import { openMenu } from "../ui/menu.tsx";
import { cost, Delta, Loading } from "../ui/parts.tsx";
import { Table } from "../ui/table.tsx";
import { isRatio, parts, quotient, said } from "../state/events.ts";
import { active, activate, comparison, event, isDiff, model, query, second, select, selected, self, shareOf, short, shownTotal } from "../state/store.ts";
import type { Numbers } from "../data/columns.ts";

interface Group {
    kind: "object" | "file" | "namespace" | "function";
    name: string;
    /** The function, of one. */
    f: number;
    parent: number;
    level: number;
    cost: number;
    /** The second event; of a ratio what is divided, and what by. */
    other: number;
    under: number;
    base: number;
    functions: number;
    children: number[];
}

const open = signal<ReadonlySet<string>>(new Set());
const chosen = signal(-1);

/** The tree of groups; parents come before children, and siblings in the order of their costs. */
export function groupsOf(own: Numbers, other: { over: Numbers; under?: Numbers } | undefined, base: Numbers | undefined): Group[] {
    const report = model();
    const groups: Group[] = [];
    const finder = new Map<string, number>();
    const enter = (kind: Group["kind"], key: string, name: string, parent: number, level: number): number => {
        const known = finder.get(key);
        if (known !== undefined) { return known; }
        finder.set(key, groups.length);
        groups.push({ kind, name, f: -1, parent, level, cost: 0, other: 0, under: 0, base: 0, functions: 0, children: [] });
        if (parent >= 0) { groups[parent].children.push(groups.length - 1); }
        return groups.length - 1;
    };
    const flags = report.side.now("fn.flags");
    for (let f = 0; f < report.functions; f++) {
        if (own[f] === 0 && flags[f] === 0 && !base?.[f]) { continue; }
        const object = enter("object", `o${report.objectOf[f]}`, report.object(f) || "(no object)", -1, 0);
        const file = enter("file", `o${report.objectOf[f]} f${report.fileOf[f]}`, report.file(f) || "(no file)", object, 1);
        const space = report.namespace(f);
        const owner = space ? enter("namespace", `o${report.objectOf[f]} f${report.fileOf[f]} n${space}`, space, file, 2) : file;
        groups.push({ kind: "function", name: report.names[f], f, parent: owner, level: groups[owner].level + 1, cost: 0,
            other: 0, under: 0, base: 0, functions: 0, children: [] });
        groups[owner].children.push(groups.length - 1);
        for (let at = groups.length - 1; at >= 0; at = groups[at].parent) {
            groups[at].cost += own[f];
            groups[at].other += other?.over[f] ?? 0;
            groups[at].under += other?.under?.[f] ?? 0;
            groups[at].base += base?.[f] ?? 0;
            groups[at].functions += 1;
        }
    }
    return groups;
}

export function Groups() {
    const of = model().base;
    const diff = isDiff.value && comparison.value === "delta" && of !== undefined;
    const own = self(comparison.value === "base" && of ? of : model().side);
    const before = diff && of ? self(of) : undefined;
    const more = second.value;
    const other = more ? parts(model().side, "fn.self", more) : undefined;
    const groups = useMemo(() => (own ? groupsOf(own, other, before) : []), [own, other?.over, other?.under, before]);
    const keyOf = (at: number): string => (at < 0 ? "" : `${keyOf(groups[at].parent)}\u0000${groups[at].name}`);
    const expanded = open.value;
    const rows = useMemo(() => {
        const out: number[] = [];
        const order = (a: number, b: number) => groups[b].cost - groups[a].cost || (groups[a].name < groups[b].name ? -1 : 1);
        const waiting = groups.map((_, at) => at).filter((at) => groups[at].parent < 0).sort(order).reverse();
        while (waiting.length > 0) {
            const at = waiting.pop() as number;
            out.push(at);
            if (expanded.has(keyOf(at))) { waiting.push(...groups[at].children.slice().sort(order).reverse()); }
        }
        return out;
    }, [groups, expanded]);
    if (!own) { return <Loading />; }
    const whole = shownTotal.value;
    const toggle = (at: number) => {
        const next = new Set(expanded);
        if (!next.delete(keyOf(at))) { next.add(keyOf(at)); }
        open.value = next;
    };
    const choose = (at: number) => {
        chosen.value = at;
        const group = groups[at];
        if (group.f >= 0) { select(group.f); return; }
        const prefix = { object: "obj", file: "file", namespace: "ns", function: "" }[group.kind];
        query.value = /\s/.test(group.name) ? "" : `${prefix}:${group.name}`;
    };
    const picked = groups.findIndex((group) => group.f >= 0 && group.f === selected.value);
    const current = groups[chosen.value]?.f === -1 ? chosen.value : rows.includes(picked) ? picked : undefined;
    return (
        <Table label="Groups" rows={rows} selected={current}
            tree={(at) => ({ level: groups[at].level, open: groups[at].children.length > 0 ? expanded.has(keyOf(at)) : undefined })}
            onToggle={toggle} onSelect={choose}
            onActivate={(at) => (groups[at].f >= 0 ? activate(groups[at].f) : toggle(at))}
            onMenu={(at, x, y) => openMenu(groups[at].f, x, y)} faint={(at) => groups[at].f >= 0 && groups[at].f === active.value}
            columns={[
                { id: "name", title: "Object, file, class, function", text: true, full: (at) => groups[at].name,
                    cell: (at) => <span class={groups[at].kind}>{label(groups[at])}</span> },
                { id: "self", title: "Self", width: 96, hint: `Sum of self costs in ${event.value.name}`,
                    cell: (at) => cost(groups[at].cost, groups[at].parent < 0 ? whole : shareOf(whole, groups[groups[at].parent].cost)), bar: (at) => groups[at].cost / whole,
                    full: (at) => `${digits(groups[at].cost)} ${event.value.name}, ${percent(groups[at].cost, whole)} %` },
                ...(diff ? [{ id: "delta", title: "\u0394", width: 88, cell: (at: number) => <Delta now={groups[at].cost} before={groups[at].base} /> }] : []),
                ...(more ? [{ id: "second", title: more.name, width: 84, hint: more.meaning,
                    cell: (at: number) => (isRatio(more) && groups[at].other === 0 && groups[at].under === 0 ? "" : said(more, quotient(more, groups[at].other, groups[at].under))) }] : []),
                { id: "count", title: "Functions", width: 74, cell: (at) => (groups[at].f >= 0 ? "" : digits(groups[at].functions)) },
            ]}
            footer={<span>{digits(groups.filter((group) => group.parent < 0).length)} objects; choosing a group filters functions</span>} />
    );
}

function label(group: Group): string {
    if (group.kind === "object" || group.kind === "file") {
        return group.name.slice(group.name.lastIndexOf("/") + 1) || group.name;
    }
    return group.f >= 0 ? model().name(group.f, short.value) : group.name;
}
