// V7: parts of the profile, such as dumps, threads and processes: which of them all views show, and what each function costs in
// each of them.

import { signal } from "@preact/signals";
import { useMemo, useRef, useState } from "preact/hooks";
import { digits, percent } from "../data/format.ts";
import type { Model } from "../data/model.ts";
import { groupsOf, partNames, waysOf, type PartGroup, type PartsBy } from "../data/partnames.ts";
import { visible } from "../data/names.ts";
import { costs, totalOf } from "../state/events.ts";
import { activate, choose, chosen, event, found, model, modelOf, numbering, select, selected } from "../state/store.ts";
import { spread, trend } from "../layout/trend.ts";
import { openMenu } from "../ui/menu.tsx";
import { Loading, Name, Segments } from "../ui/parts.tsx";
import { Table, type TableColumn } from "../ui/table.tsx";
import { Multiples } from "./multiples.tsx";

const which = signal<"self" | "incl">("self");
const by = signal<PartsBy>("part");
const picture = signal<"table" | "flames">("table");
const sort = signal({ id: "total", down: true });
/** More columns are no table that anyone reads. */
const MOST = 100;

/** Whether the report has parts that can be looked at one by one. */
export function hasParts(): boolean {
    return model().pack.head.parts.length > 1;
}

const WORDS: Record<PartsBy, [string, string]> = { part: ["Parts", "A column for each part"], thread: ["Threads", "A column for each thread"],
    process: ["Processes", "A column for each process"], file: ["Files", "A column for each file"] };

/** Parts as bars, a row for each thread, in the order in which they were written. Clicking, dragging or keys choose some. */
function Strip() {
    const { head } = model().pack;
    const names = useMemo(() => partNames(head), [head]);
    const rows = useMemo(() => (head.parts.some(({ thread }) => thread !== undefined) ? groupsOf(head, "thread") : groupsOf(head, "process")), [head]);
    const [at, setAt] = useState(0);
    const anchor = useRef(0);
    const dragged = useRef(false);
    const order = rows.flatMap(({ parts }) => parts);
    const totals = head.parts.map((part) => totalOf(model(), part, event.value));
    const whole = totals.reduce((sum, total) => sum + total, 0);
    const most = Math.max(...totals, 1);
    const mine = new Set(chosen.value);
    const between = (a: number, b: number) => {
        const ends = [order.indexOf(a), order.indexOf(b)].sort((x, y) => x - y);
        return order.slice(ends[0], ends[1] + 1);
    };
    const only = (part: number) => choose(mine.size === 1 && mine.has(part) ? [] : [part]);
    const toggle = (part: number) => choose(mine.has(part) ? chosen.value.filter((other) => other !== part) : [...chosen.value, part]);
    function move(to: number, extend: boolean) {
        setAt(to);
        document.getElementById(`part-${to}`)?.scrollIntoView({ block: "nearest", inline: "nearest" });
        if (extend) { choose(between(anchor.current, to)); } else { anchor.current = to; }
    }
    function onKey(key: KeyboardEvent) {
        if (key.altKey || key.metaKey) { return; }
        const place = order.indexOf(at);
        const steps: Record<string, number> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -order.length, End: order.length };
        if (steps[key.key]) {
            move(order[Math.max(0, Math.min(order.length - 1, place + steps[key.key]))], key.shiftKey);
        } else if (key.key === " ") {
            toggle(at);
        } else if (key.key === "Enter") {
            only(at);
        } else if (key.key === "Escape") {
            choose([]);
        } else if (key.key === "a" && key.ctrlKey) {
            choose([]);
        } else {
            return;
        }
        key.preventDefault();
        key.stopPropagation();
    }
    return (
        <div class="strip" role="listbox" aria-multiselectable="true" aria-label="Parts" tabIndex={0} aria-activedescendant={`part-${at}`} onKeyDown={onKey}>
            {rows.map(({ name, parts }) => (
                <div key={name} class="lane" role="group" aria-label={name}>
                    {rows.length > 1 && <span class="lane-name" aria-hidden="true">{name}</span>}
                    {parts.map((part) => (
                        <div key={part} id={`part-${part}`} role="option" aria-selected={mine.size === 0 || mine.has(part)}
                            class={`slice${mine.size > 0 && !mine.has(part) ? " out" : ""}${part === at ? " here" : ""}`}
                            aria-label={`${names[part]}, ${percent(totals[part], whole)} %`}
                            title={[names[part], `${digits(totals[part])} ${event.value.name}, ${percent(totals[part], whole)} %`, ...(head.parts[part].command ? [visible(head.parts[part].command ?? "")] : []), ...head.parts[part].desc.map(visible)].join("\n")}
                            onPointerDown={(press) => {
                                if (press.button !== 0) { return; }
                                press.currentTarget.releasePointerCapture(press.pointerId);
                                dragged.current = false;
                                if (!press.shiftKey) { anchor.current = part; }
                            }}
                            onPointerEnter={(press) => {
                                if (press.buttons !== 1 || part === anchor.current) { return; }
                                dragged.current = true;
                                choose(between(anchor.current, part));
                            }}
                            onClick={(click) => {
                                setAt(part);
                                if (dragged.current) { dragged.current = false; return; }
                                if (click.shiftKey) { choose(between(anchor.current, part)); } else if (click.ctrlKey || click.metaKey) { toggle(part); } else { only(part); }
                            }}>
                            <span class="fill" style={{ height: `${Math.max(2, (totals[part] * 100) / most)}%` }} />
                        </div>
                    ))}
                </div>
            ))}
        </div>
    );
}

export function Parts() {
    const { head } = model().pack;
    const ways = waysOf(head);
    const way = ways.includes(by.value) ? by.value : "part";
    const mine = chosen.value;
    const [groups, left] = useMemo((): [PartGroup[], number] => {
        const kept = new Set(mine.length > 0 ? mine : head.parts.keys());
        const all = groupsOf(head, way).map(({ name, parts }) => ({ name, parts: parts.filter((part) => kept.has(part)) })).filter(({ parts }) => parts.length > 0);
        return [all.slice(0, MOST), Math.max(0, all.length - MOST)];
    }, [head, way, mine]);
    if (!hasParts()) { return null; }
    return (
        <div class="view">
            <div class="bar-tools">
                {ways.length > 1 && <Segments label="Columns" value={way} onChange={(value) => { by.value = value; }} options={ways.map((id): [PartsBy, string, string] => [id, ...WORDS[id]])} />}
                <Segments label="Picture" value={picture.value} onChange={(value) => { picture.value = value; }}
                    options={[["table", "Table", "A row for each function"], ["flames", "Flames", "A small flame graph for each column, all of one scale"]]} />
                {picture.value === "table" && <Segments label="Costs" value={which.value} onChange={(value) => { which.value = value; }}
                    options={[["self", "Self", "Without what functions call"], ["incl", "Inclusive", "With all that they call"]]} />}
                <span class="grow" />
                <span class="muted">{mine.length > 0 ? `${digits(mine.length)} of ${digits(head.parts.length)} parts` : `all ${digits(head.parts.length)} parts`}</span>
                {mine.length > 0 && <button type="button" class="quiet" onClick={() => choose([])}>Show all</button>}
            </div>
            <Strip />
            {picture.value === "flames" ? <Multiples groups={groups} left={left} /> : <Matrix groups={groups} left={left} timed={inTime(head.parts)} />}
        </div>
    );
}

/** Whether parts follow one another in time, and do not only stand beside each other. */
function inTime(parts: { number?: number }[]): boolean {
    return new Set(parts.map(({ number }) => number)).size > 1;
}

function Matrix({ groups, left, timed }: { groups: PartGroup[]; left: number; timed: boolean }) {
    const report = model();
    const of = event.value;
    const kind = `fn.${which.value}`;
    const models: Model[] = [];
    for (const { parts } of groups) {
        const one = modelOf(parts);
        if (one) { models.push(one); }
    }
    const cells = models.map((one) => costs(one.side, kind, of)?.values);
    const all = costs(report.side, kind, of)?.values;
    const mask = found.value;
    const { id, down } = sort.value;
    const ready = models.length === groups.length && all !== undefined && cells.every((values) => values !== undefined);
    const values = (f: number): number[] => cells.map((column) => column?.[f] ?? 0);
    const rows = useMemo(() => {
        if (!ready) { return []; }
        const at = /^part (\d+)$/.exec(id);
        const column = at ? cells[Number(at[1])] : undefined;
        const key = (f: number) => (id === "spread" ? spread(values(f)) : id === "trend" ? trend(values(f)) : (column ?? all)?.[f] ?? 0);
        const listed: number[] = [];
        for (let f = 0; f < report.functions; f++) { if ((!mask || mask[f]) && (all[f] !== 0 || cells.some((known) => known?.[f]))) { listed.push(f); } }
        const keys = new Map(listed.map((f) => [f, key(f)]));
        const order = (a: number, b: number) => (a === b ? 0 : a < b ? -1 : 1);
        return listed.sort((a, b) => order(keys.get(a) as number, keys.get(b) as number) * (down ? -1 : 1) || (report.names[a] < report.names[b] ? -1 : 1));
    }, [ready, groups, of, kind, mask, id, down]);
    if (!ready) { return <Loading />; }
    const totals = models.map((one) => totalOf(one, one.side, of));
    const whole = totalOf(report, report.side, of);
    const said = (value: number, share: number) => (numbering.value === "percent" ? percent(value, share) : digits(value));
    const columns: TableColumn[] = [
        { id: "name", title: "Function", text: true, least: 200, cell: (f) => <Name f={f} /> },
        { id: "total", title: "Together", width: 84, hint: "In all parts that are shown", cell: (f) => said(all[f], whole), full: (f) => `${digits(all[f])} ${of.name}` },
        { id: "spread", title: "Spread", width: 70, hint: "The highest value as a multiple of the lowest one", cell: (f) => times(spread(values(f))) },
        ...(timed && groups.length > 2 ? [{ id: "trend", title: "Trend", width: 84, hint: "How much more in each column than in the one before, as a share of the mean",
            cell: (f: number) => signedShare(trend(values(f))) }] : []),
        ...groups.map(({ name }, at): TableColumn => ({ id: `part ${at}`, title: name, width: Math.max(84, Math.min(190, name.length * 7 + 22)), hint: `${name}: ${digits(totals[at])} ${of.name}`,
            cell: (f) => said(cells[at]?.[f] ?? 0, totals[at]), bar: (f) => (cells[at]?.[f] ?? 0) / Math.max(...values(f), 1),
            full: (f) => `${name}: ${digits(cells[at]?.[f] ?? 0)} ${of.name}, ${percent(cells[at]?.[f] ?? 0, totals[at])} % of it` })),
    ];
    return (
        <Table label="Functions by parts" rows={rows} columns={columns} sort={sort.value} selected={selected.value} onSelect={select} onActivate={activate}
            onMenu={openMenu} onSort={(next) => { if (next !== "name") { sort.value = { id: next, down: next === id ? !down : true }; } }}
            footer={<><span>{digits(rows.length)} functions</span>{left > 0 && <span>{digits(left)} more columns: choose fewer parts above to see them</span>}</>} />
    );
}

function times(value: number): string {
    return value === Infinity ? "\u221e" : `${value >= 100 ? digits(Math.round(value)) : value.toFixed(2)}\u00d7`;
}

function signedShare(value: number): string {
    const share = value * 100;
    return Math.abs(share) < 0.05 ? "0" : `${share > 0 ? "+" : "\u2212"}${Math.abs(share).toFixed(1)} %`;
}
