// A table of any length: only the rows in sight are in the document.

import type { ComponentChildren } from "preact";
import { csv, save } from "./save.ts";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

export interface TableColumn {
    id: string;
    title: string;
    /** What it is, in a sentence. */
    hint?: string;
    /** In pixels; the one without takes what is left. */
    width?: number;
    text?: boolean;
    /** The least width of the one without. */
    least?: number;
    cell: (row: number) => ComponentChildren;
    /** Length of the bar behind the number, from 0 to 1. */
    bar?: (row: number) => number;
    /** What the cell says in full. */
    full?: (row: number) => string;
    /** A second number of the cell, which has a column of its own where rows are saved. */
    beside?: { title: string; full: (row: number) => string };
}

interface Properties {
    label: string;
    rows: ArrayLike<number>;
    columns: TableColumn[];
    sort?: { id: string; down: boolean };
    onSort?: (id: string) => void;
    selected?: number;
    onSelect?: (row: number) => void;
    onActivate?: (row: number) => void;
    onMenu?: (row: number, x: number, y: number) => void;
    faint?: (row: number) => boolean;
    footer?: ComponentChildren;
    empty?: ComponentChildren;
    /** Rows of a tree: level, and whether it is open. */
    tree?: (row: number) => { level: number; open: boolean | undefined };
    onToggle?: (row: number) => void;
    /** Whether the footer has its own ways to save rows. */
    saves?: boolean;
}

const HEIGHT = 24;
/** Browsers cannot scroll further. */
const TALLEST = 15_000_000;

export function Table(properties: Properties) {
    const { label, rows, columns, sort, selected, footer, tree } = properties;
    const body = useRef<HTMLDivElement>(null);
    const [top, setTop] = useState(0);
    const [room, setRoom] = useState(600);
    useLayoutEffect(() => {
        const element = body.current;
        if (!element) { return undefined; }
        const measure = () => setRoom(element.clientHeight);
        measure();
        const observer = new ResizeObserver(measure);
        observer.observe(element);
        return () => observer.disconnect();
    }, []);
    const all = rows.length * HEIGHT;
    const tall = Math.min(all, TALLEST);
    // Where the document is shorter than the rows, a step of it is several of theirs.
    const factor = tall > room ? (all - room) / (tall - room) : 1;
    const offset = top * factor;
    const first = Math.max(0, Math.floor(offset / HEIGHT) - 4);
    const last = Math.min(rows.length, Math.ceil((offset + room) / HEIGHT) + 4);
    const turn = useRef({ first: 0, shift: 0 });
    const place = useMemo(() => (selected === undefined ? -1 : indexOf(rows, selected)), [rows, selected]);
    const reach = (at: number) => {
        const element = body.current;
        if (!element || at < 0) { return; }
        const y = at * HEIGHT;
        const visible = element.scrollTop * factor;
        if (y < visible) { element.scrollTop = y / factor; }
        if (y + HEIGHT > visible + room) { element.scrollTop = (y + HEIGHT - room) / factor; }
    };
    useEffect(() => reach(place), [selected, rows]);
    const template = columns.map(({ width, least }) => (width ? `${width}px` : `minmax(${least ?? 120}px, 1fr)`)).join(" ");
    const wide = columns.reduce((sum, { width, least }) => sum + (width ?? least ?? 120), 12);

    function onKey(event: KeyboardEvent) {
        const page = Math.max(1, Math.floor(room / HEIGHT) - 1);
        const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1, PageDown: page, PageUp: -page,
            Home: -rows.length, End: rows.length };
        if (event.ctrlKey || event.metaKey || event.altKey) { return; }
        const step = steps[event.key];
        if (step !== undefined && rows.length > 0) {
            const to = Math.max(0, Math.min(rows.length - 1, (place < 0 ? (step > 0 ? -1 : 0) : place) + step));
            properties.onSelect?.(rows[to]);
            event.preventDefault();
            event.stopPropagation();
        } else if (event.key === "Enter" && place >= 0) {
            properties.onActivate?.(rows[place]);
            event.preventDefault();
        } else if ((event.key === "ArrowRight" || event.key === "ArrowLeft") && tree && place >= 0) {
            const { open } = tree(rows[place]);
            if (open !== undefined && open !== (event.key === "ArrowRight")) { properties.onToggle?.(rows[place]); }
            event.preventDefault();
        }
    }

    // What a cell says in full is found when somebody points to it: of most nobody ever asks. Cells have other rows later, so it is found
    // again whenever the pointer moves.
    function tell(event: MouseEvent) {
        const cell = (event.target as HTMLElement).closest<HTMLElement>("[role=gridcell]");
        const line = cell?.closest<HTMLElement>("[role=row]");
        if (!cell || !line) { return; }
        const full = columns[[...line.children].indexOf(cell)]?.full?.(rows[Number(line.ariaRowIndex) - 2]);
        if (full === undefined) { cell.removeAttribute("title"); } else if (cell.title !== full) { cell.title = full; }
    }

    // Rows that come into sight take the places of those that went out of it. After a leap all of them stay where they are in the
    // document, with other texts: making elements takes longer than changing them.
    const slots = Math.ceil(room / HEIGHT) + 10;
    if (Math.abs(first - turn.current.first) > slots / 2) { turn.current.shift += first - turn.current.first; }
    turn.current.first = first;
    const slot = (at: number) => (((at - turn.current.shift) % slots) + slots) % slots;
    const shown = [];
    for (let at = first; at < last; at++) { shown.push(at); }
    return (
        <div class="table">
            <div class="scroll" ref={body} tabIndex={0} role={tree ? "treegrid" : "grid"} aria-label={label}
                aria-rowcount={rows.length + 1} aria-colcount={columns.length} onKeyDown={onKey}
                aria-activedescendant={place >= first && place < last ? `${idOf(label)}-${rows[place]}` : undefined}
                onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
                <div class="head" role="row" aria-rowindex={1} style={{ gridTemplateColumns: template, minWidth: `${wide}px` }}>
                    {columns.map(({ id, title, hint, text }) => {
                        const sorted = sort?.id === id;
                        const state = sorted ? (sort.down ? "descending" : "ascending") : "none";
                        return (
                            <div key={id} role="columnheader" class={text ? "text" : "number"} title={hint}
                                aria-sort={properties.onSort ? state : undefined}>
                                {properties.onSort
                                    ? <button type="button" onClick={() => properties.onSort?.(id)}>
                                        {title}{sorted && <span class="arrow">{sort.down ? "\u25be" : "\u25b4"}</span>}
                                    </button>
                                    : <span>{title}</span>}
                            </div>
                        );
                    })}
                </div>
                {rows.length === 0 && <p class="nothing">{properties.empty ?? "Nothing is here."}</p>}
                <div class="space" style={{ height: `${tall}px`, minWidth: `${wide}px` }} onMouseOver={tell} onMouseMove={tell}>
                    <div style={{ transform: `translateY(${Math.round(first * HEIGHT - offset + top)}px)` }}>{shown.map((at) => {
                        const row = rows[at];
                        const level = tree?.(row);
                        const chosen = row === selected;
                        return (
                            <div key={slot(at)} id={`${idOf(label)}-${row}`} role="row" aria-rowindex={at + 2}
                                aria-selected={chosen} aria-level={level && level.level + 1} aria-expanded={level?.open}
                                class={`row${chosen ? " chosen" : ""}${properties.faint?.(row) ? " faint" : ""}`}
                                onClick={() => properties.onSelect?.(row)}
                                onDblClick={() => properties.onActivate?.(row)}
                                onContextMenu={(event) => {
                                    if (!properties.onMenu) { return; }
                                    event.preventDefault();
                                    properties.onSelect?.(row);
                                    properties.onMenu(row, event.clientX, event.clientY);
                                }}>
                                {columns.map(({ id, text, cell, bar, width, least }, column) => (
                                    <div key={id} role="gridcell" class={bar ? "number barred" : text ? "text" : "number"}
                                        style={`${width ? `flex:0 0 ${width}px` : `flex:1 1 0;min-width:${least ?? 120}px`}${bar ? `;background-size:${bounded(bar(row))}% 16px` : ""}`}>
                                        {column === 0 && level && (
                                            <span class="indent" style={{ width: `${level.level * 14 + 16}px` }}
                                                onClick={(event) => {
                                                    event.stopPropagation();
                                                    properties.onToggle?.(row);
                                                }}>
                                                {level.open === undefined ? "" : level.open ? "\u25be" : "\u25b8"}
                                            </span>
                                        )}
                                        {cell(row)}
                                    </div>
                                ))}
                            </div>
                        );
                    })}</div>
                </div>
            </div>
            {(footer || rows.length > 0) && (
                <div class="foot">
                    {footer ?? <span />}
                    {!properties.saves && rows.length > 0 && (["csv", "json"] as const).map((kind) => (
                        <button key={kind} type="button" class="quiet" title={`Save all rows as ${kind.toUpperCase()}`} onClick={() => {
                            const told = toldOf(rows, columns, tree);
                            const text = kind === "csv" ? csv(told.head, told.lines) : JSON.stringify(told.lines.map((line) => Object.fromEntries(line.map((value, at) => [told.head[at], value]))), null, 1);
                            save(`${idOf(label)}.${kind}`, new Blob([text], { type: kind === "csv" ? "text/csv" : "application/json" }));
                        }}>{kind.toUpperCase()}</button>
                    ))}
                </div>
            )}
        </div>
    );
}

/** What rows say in full, as text or as numbers; of a tree how deep each stands, too. */
export function toldOf(rows: ArrayLike<number>, columns: readonly TableColumn[], tree?: Properties["tree"]): { head: string[]; lines: (string | number)[][] } {
    const saved = columns.flatMap((column): TableColumn[] => (column.beside ? [column, { ...column, ...column.beside }] : [column]));
    const value = ({ text, cell, full }: TableColumn, row: number): string | number => {
        const shown = cell(row);
        const short = typeof shown === "string" ? shown : "";
        if (text) { return (full?.(row) ?? short).split("\n")[0]; }
        // Numbers stand in front of what they are of, in groups of digits.
        const digits = /^[\u2212-]?\d[\d,]*(\.\d+)?(?=$|[\s,])/.exec(full?.(row) ?? short);
        return digits ? Number(digits[0].replace("\u2212", "-").replaceAll(",", "")) : short;
    };
    return {
        head: [...(tree ? ["level"] : []), ...saved.map(({ id, title }) => title || id)],
        lines: Array.from(rows, (row) => [...(tree ? [tree(row).level] : []), ...saved.map((column) => value(column, row))]),
    };
}

function bounded(share: number): number {
    return Number.isFinite(share) ? Math.max(0, Math.min(100, share * 100)) : 0;
}

function idOf(label: string): string {
    return label.toLowerCase().replace(/[^a-z]+/g, "-");
}

function indexOf(rows: ArrayLike<number>, row: number): number {
    for (let at = 0; at < rows.length; at++) { if (rows[at] === row) { return at; } }
    return -1;
}
