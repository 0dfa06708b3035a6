// The menu of a function: the same wherever the function is shown.

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { activate, idOf, model, permalink, query, reveal, select } from "../state/store.ts";
import { linkOf } from "./editor.tsx";
import { exporters } from "./exports.ts";

const menu = signal<{ f: number; x: number; y: number } | null>(null);

export function openMenu(f: number, x: number, y: number) {
    if (f >= 0) { menu.value = { f, x, y }; }
}

export async function copy(text: string) {
    try {
        await navigator.clipboard.writeText(text);
    } catch {
        // Pages from file:// may not; a selected text can be copied everywhere.
        const area = document.createElement("textarea");
        area.value = text;
        document.body.append(area);
        area.select();
        document.execCommand("copy");
        area.remove();
    }
}

/** The first line of a function that has costs; 1 until that is known. */
function firstLine(f: number): number {
    const { side, fileOf } = model();
    const [from, file, line] = ["row.from", "row.file", "row.line"].map((name) => side.column(name)?.values);
    if (!model().pack.head.editor || !from || !file || !line) { return 1; }
    let first = Infinity;
    for (let k = from[f]; k < from[f + 1]; k++) { if (file[k] === fileOf[f] && line[k] > 0 && line[k] < first) { first = line[k]; } }
    return first === Infinity ? 1 : first;
}

export function Menu() {
    const box = useRef<HTMLDivElement>(null);
    const open = menu.value;
    useEffect(() => {
        if (!open) { return undefined; }
        const before = document.activeElement instanceof HTMLElement ? document.activeElement : null;
        box.current?.querySelector("button")?.focus();
        const close = (event: Event) => {
            if (event.type !== "keydown" && event.target instanceof Node && box.current?.contains(event.target)) { return; }
            if (event instanceof KeyboardEvent && event.key !== "Escape") { return; }
            menu.value = null;
            before?.focus();
        };
        addEventListener("mousedown", close);
        addEventListener("keydown", close);
        addEventListener("blur", close);
        return () => {
            removeEventListener("mousedown", close);
            removeEventListener("keydown", close);
            removeEventListener("blur", close);
        };
    }, [open]);
    if (!open) { return null; }
    const { f, x, y } = open;
    const entries: [string, () => void][] = [
        ["Make active", () => activate(f)],
        ["Show its calls", () => { activate(f); reveal("calls"); }],
        ["Show its code", () => { activate(f); reveal("code"); }],
        ["Show it in the flame graph", () => { select(f); reveal("flame"); }],
        ["Show its call graph", () => { activate(f); reveal("graph"); }],
        ["Search its namespace", () => { query.value = `ns:${model().namespace(f)}`; }],
        ["Search its file", () => { query.value = `file:${model().file(f)}`; }],
        ["Copy name", () => void copy(model().names[f])],
        ["Copy permalink", () => void copy(permalink().replace(/#.*$/, "") + `#v=1&f=${idOf(f)}&n=${encodeURIComponent(model().names[f].slice(0, 200))}`)],
        ["Copy folded stacks below it", () => void copy(exporters.folded(f))],
    ];
    const source = linkOf(model().fileOf[f], firstLine(f));
    const usable = entries.filter(([text]) => text !== "Search its namespace" || model().namespace(f) !== "");
    const step = (event: KeyboardEvent) => {
        const buttons = [...(box.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
        const at = buttons.indexOf(document.activeElement as HTMLElement);
        const to = event.key === "ArrowDown" ? at + 1 : event.key === "ArrowUp" ? at - 1 : undefined;
        if (to === undefined) { return; }
        buttons[(to + buttons.length) % buttons.length].focus();
        event.preventDefault();
        event.stopPropagation();
    };
    return (
        <div class="menu" role="menu" aria-label="Function" ref={box} onKeyDown={step}
            style={{ left: `${Math.min(x, innerWidth - 240)}px`, top: `${Math.min(y, innerHeight - 300)}px` }}>
            {usable.map(([text, act]) => (
                <button key={text} type="button" role="menuitem" onClick={() => { menu.value = null; act(); }}>{text}</button>
            ))}
            {source && <a role="menuitem" href={source} onClick={() => { menu.value = null; }}>Open in the editor</a> /* lint: encoded by editorLink */}
        </div>
    );
}
