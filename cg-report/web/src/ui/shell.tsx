// The frame around the views: bar, navigator, two panes, help.

import { signal, useSignal } from "@preact/signals";
import { Component, type ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { compact, digits } from "../data/format.ts";
import { exactTotal } from "../state/events.ts";
import { activate, active, addFormula, behind, canTakeApart, choose, chosen, comparison, contextsApart, dialog, event, eventAt, events, formulas, hottest, inlinedApart, isDiff, knowsContexts, model, nextEvent,
    look, note, numbering, panes, permalink, query, ratios, removeFormula, secondName, short, show, tellContexts, theme, total, baseTotal, WHOLE } from "../state/store.ts";
import { Functions } from "../views/functions.tsx";
import { Groups } from "../views/groups.tsx";
import { VIEWS } from "../views/index.ts";
import { copy, Menu } from "./menu.tsx";
import { Delta, Name, Segments } from "./parts.tsx";
import { shortened } from "../data/names.ts";
import { partNames, partsOfFiles } from "../data/partnames.ts";

const navigator = signal<"functions" | "groups">("functions");
const sheet = signal(false);
const sizes = signal({ side: 430, upper: 0.5, one: false });
const copied = signal(false);

/** Shows what is wrong with a view, and lets the others live. */
class Guard extends Component<{ name: string; children: ComponentChildren }, { fault: string }> {
    override state = { fault: "" };

    override componentDidCatch(error: unknown) {
        this.setState({ fault: error instanceof Error ? `${error.message}\n${error.stack ?? ""}` : String(error) });
    }

    override render() {
        if (!this.state.fault) { return this.props.children; }
        return (
            <div class="empty" role="alert">
                <h3>This view failed</h3>
                <p class="mono">{this.state.fault.split("\n")[0]}</p>
                <p>
                    <button type="button" onClick={() => void copy(`${this.props.name}: ${this.state.fault}`)}>Copy details</button>{" "}
                    <button type="button" onClick={() => this.setState({ fault: "" })}>Try again</button>
                </p>
            </div>
        );
    }
}

function Bar() {
    const report = model();
    const head = report.pack.head;
    const command = head.sides[0].command || head.title;
    return (
        <header class="top">
            <button type="button" class="quiet nav-open" aria-label="Functions" onClick={() => { sheet.value = !sheet.value; }}>{"\u2630"}</button>
            <button type="button" class="program" title={`${command}\nShow the whole program`} onClick={() => activate(WHOLE)}>
                <strong>{shortCommand(command)}</strong>
                <span class="muted number" title={`${digits(exactTotal(report, report.side, event.value))} ${event.value.name}`}>{compact(total.value)} {event.value.name}</span>
                {isDiff.value && <Delta now={total.value} before={baseTotal.value} />}
            </button>
            <Chosen />
            <Crumbs />
            <span class="grow" />
            <label class="search"><span class="hidden">Search functions</span>
                <input id="search" type="search" placeholder="Search  /" value={query.value} spellcheck={false}
                    title={"substring, /regex/, obj:, file:, ns:, self>1%, incl>1%, calls>1000"}
                    onInput={(input) => { query.value = input.currentTarget.value; }}
                    onKeyDown={(key) => {
                        if (key.key === "Escape") { query.value = ""; key.currentTarget.blur(); }
                        if (key.key === "Enter" || key.key === "ArrowDown") { document.querySelector<HTMLElement>(".navigator .scroll")?.focus(); key.preventDefault(); }
                    }} />
            </label>
            <label class="choice"><span class="hidden">Event</span>
                <select value={String(eventAt.value)} title={`${event.value.name}: ${event.value.meaning}`} onChange={(change) => { eventAt.value = Number(change.currentTarget.value); }}>
                    {events.value.map(({ name, derived }, at) => <option key={name} value={String(at)}>{name}{derived ? " *" : ""}</option>)}
                </select>
            </label>
            <label class="choice"><span class="hidden">Second event</span>
                <select value={secondName.value} title="A second event, or a ratio, beside the first one" onChange={(change) => { secondName.value = change.currentTarget.value; }}>
                    <option value="">no second</option>
                    {events.value.map(({ name }) => <option key={name} value={name}>{name}</option>)}
                    {ratios.value.length > 0 && <optgroup label="Ratios">{ratios.value.map(({ name }) => <option key={name} value={name}>{name}</option>)}</optgroup>}
                </select>
            </label>
            {isDiff.value && <Segments label="Side" value={comparison.value} onChange={(value) => { comparison.value = value; }}
                options={[["base", "Base"], ["new", "New"], ["delta", "\u0394"]]} />}
            <Segments label="Numbers" value={numbering.value} onChange={(value) => { numbering.value = value; }}
                options={[["percent", "%", "Shares of the program"],
                    ["parent", "%\u2191", "Shares of what contains it (r): of the active function, of the cell or group above"],
                    ["absolute", "123", "All digits"], ["percall", "/n", "Cost per call"]]} />
            {knowsContexts.value && <span class="choice contexts-switch"><span aria-hidden="true">Contexts</span><Segments label="Contexts of functions" value={contextsApart.value ? "apart" : "merged"} onChange={(value) => void tellContexts(value === "apart")}
                options={[["merged", "merged", "Each function once, whoever called it and at whatever level of recursion (o)"], ["apart", "apart", "Functions apart by their callers and levels of recursion, as the run recorded them (o)"]]} /></span>}
            {canTakeApart.value && <span class="choice inlined-switch"><span aria-hidden="true">Inlined</span><Segments label="Inlined functions" value={inlinedApart.value ? "own" : "callers"} onChange={(value) => { inlinedApart.value = value === "own"; }}
                options={[["callers", "in callers", "Inlined functions in their callers, as the code is (i)"], ["own", "own", "Inlined functions of their own (i): exact self costs; how often they were called is not known"]]} /></span>}
            <button type="button" class="quiet" aria-pressed={short.value} title="Shorten templates and generics" onClick={() => { short.value = !short.value; }}>{"<\u2026>"}</button>
            <button type="button" class="quiet" title="Formulas of events" onClick={() => { dialog.value = "formulas"; }}>{"\u03a3"}</button>
            <button type="button" class="quiet" title="Copy a link to what is seen (c)" onClick={() => void link()}>{copied.value ? "copied" : "Link"}</button>
            <button type="button" class="quiet" title={`Theme: ${theme.value}`} aria-label={`Theme: ${theme.value}`} onClick={switchTheme}>{theme.value === "dark" ? "\u263e" : theme.value === "light" ? "\u2600" : "\u25d1"}</button>
            <button type="button" class="quiet" title="Help (?)" aria-label="Help" onClick={() => { dialog.value = "help"; }}>?</button>
        </header>
    );
}

/** That not all of the profile is shown, which nobody must miss. */
function Chosen() {
    const { head } = model().pack;
    const parts = chosen.value;
    if (head.separate) { return <Sets />; }
    if (parts.length === 0) { return null; }
    const text = parts.length === 1 ? partNames(head)[parts[0]] : `${parts.length} of ${head.parts.length} parts`;
    return <button type="button" class="chosen-parts" title="Only these parts are shown, in all views. Show all." onClick={() => choose([])}>{text} {"\u2715"}</button>;
}

/** Which profile is shown, where several were not added up. */
function Sets() {
    const { head } = model().pack;
    const sets = partsOfFiles(head);
    const key = chosen.value.join();
    const at = chosen.value.length === 0 ? sets.length : sets.findIndex((set) => set.parts.join() === key);
    return (
        <label class="choice chosen-set"><span class="hidden">Profile</span>
            <select value={String(at)} title="The profile that is shown, in all views" onChange={(change) => choose(sets[Number(change.currentTarget.value)]?.parts ?? [])}>
                {sets.map(({ name }, place) => <option key={place} value={String(place)}>{name}</option>)}
                <option value={String(sets.length)}>all, added up</option>
                {at < 0 && <option value="-1">{chosen.value.length} of {head.parts.length} parts</option>}
            </select>
        </label>
    );
}

/** The program without its folders, and the beginning of its arguments. */
function shortCommand(command: string): string {
    const [program, ...rest] = command.split(" ");
    const text = [program.slice(program.lastIndexOf("/") + 1), ...rest].join(" ");
    return text.length > 40 ? `${text.slice(0, 39)}\u2026` : text;
}

/** Where the reader is: program, object, file, class, function. */
function Crumbs() {
    const report = model();
    const f = active.value;
    if (f === WHOLE) { return null; }
    const space = report.namespace(f);
    const object = report.object(f);
    return (
        <nav class="crumb-bar" aria-label="Place">
            {object && <button type="button" class="link" title={object} onClick={() => { query.value = `obj:${object}`; }}>{object.slice(object.lastIndexOf("/") + 1)}</button>}
            {space && <button type="button" class="link" title={space} onClick={() => { query.value = `ns:${space}`; }}>{shortened(space).length > 32 ? `\u2026${shortened(space).slice(-31)}` : shortened(space)}</button>}
            <span class="here" aria-current="location"><Name f={f} /></span>
        </nav>
    );
}

async function link() {
    await copy(permalink());
    copied.value = true;
    setTimeout(() => { copied.value = false; }, 1500);
}

export function switchTheme() {
    theme.value = theme.value === "auto" ? "dark" : theme.value === "dark" ? "light" : "auto";
}

function Pane({ at }: { at: 0 | 1 }) {
    const views = VIEWS.filter((view) => view.wanted?.() ?? true);
    const shown = views.find((view) => view.id === panes.value[at]) ?? views[0];
    const View = shown.component;
    const strip = useRef<HTMLDivElement>(null);
    return (
        <section class="pane" aria-label={at === 0 ? "Upper view" : "Lower view"}>
            <div class="tabs" role="tablist" ref={strip} aria-label={at === 0 ? "Upper view" : "Lower view"} onKeyDown={(key) => {
                const step = key.key === "ArrowRight" ? 1 : key.key === "ArrowLeft" ? -1 : 0;
                if (step === 0) { return; }
                const next = (views.indexOf(shown) + step + views.length) % views.length;
                show(views[next].id, at);
                strip.current?.querySelectorAll<HTMLElement>("[role=tab]")[next]?.focus();
                key.preventDefault();
                key.stopPropagation();
            }}>
                {views.map((view, number) => (
                    <button key={view.id} type="button" role="tab" id={`tab-${at}-${view.id}`} aria-controls={`pane-${at}`} aria-selected={view === shown} tabIndex={view === shown ? 0 : -1}
                        title={`${view.hint} (${at === 0 ? "" : "Shift+"}${number + 1})`} onClick={() => show(view.id, at)}>{view.title}</button>
                ))}
            </div>
            <div class="body" role="tabpanel" id={`pane-${at}`} aria-labelledby={`tab-${at}-${shown.id}`}>
                <Guard key={shown.id} name={shown.title}><View /></Guard>
            </div>
        </section>
    );
}

function Splitter({ upright, onMove, value, label }: { upright: boolean; onMove: (x: number, y: number) => void; value: number; label: string }) {
    return (
        <div class={`splitter ${upright ? "upright" : "level"}`} role="separator" tabIndex={0} aria-label={label} aria-orientation={upright ? "vertical" : "horizontal"} aria-valuenow={Math.round(value)}
            onPointerDown={(press) => press.currentTarget.setPointerCapture(press.pointerId)}
            onPointerMove={(move) => { if (move.currentTarget.hasPointerCapture(move.pointerId)) { onMove(move.clientX, move.clientY); } }}
            onKeyDown={(key) => {
                const step = { ArrowLeft: [-24, 0], ArrowRight: [24, 0], ArrowUp: [0, -24], ArrowDown: [0, 24] }[key.key];
                if (!step) { return; }
                const box = key.currentTarget.getBoundingClientRect();
                onMove(box.left + step[0], box.top + step[1]);
                key.preventDefault();
                key.stopPropagation();
            }} />
    );
}

function Help() {
    const keys: [string, string][] = [
        ["/", "search"], ["j k \u2191 \u2193", "next and previous row"], ["Enter", "make active: the root of all views"],
        ["Backspace, Alt+\u2190", "back"], ["h", "the whole program"], ["u", "hottest caller"], ["d", "hottest callee"], ["1 \u2026 9", "view of the upper pane (with Shift: of the lower one)"],
        ["e E", "next and previous event"], ["r", "shares of the program, or of what contains it"], ["i", "inlined functions in their callers, or of their own"], ["o", "contexts of functions merged, or apart"], ["x", "swap base and new"], ["+ \u2212 0", "zoom in pictures"], ["arrows", "walk in flame graph, treemap, call graph"],
        ["Enter in a flame graph", "zoom into the path (Esc: out; Shift+Enter: make active)"], ["Ctrl+wheel, drag", "zoom and move pictures"],
        ["c", "copy a link to what is seen"], ["t", "theme"], ["?", "this page"],
    ];
    return (
        <Dialog title="Keys and marks">
            <dl class="keys">{keys.map(([key, what]) => <><dt key={key}><kbd>{key}</kbd></dt><dd>{what}</dd></>)}</dl>
            <h3>Search</h3>
            <p class="mono">parse /^std::.*sort/ obj:libc file:main.c ns:geo self&gt;1% incl&gt;5% calls&gt;1000</p>
            <h3>Marks</h3>
            <p>{"\u2248"} estimated: a callee's cost is shared among the ways to its caller in proportion. {"\u21bb"} member of a cycle: inclusive cost is what it spends itself and outside the cycle.
                {" \u25d0"} incomplete: callers saw another cost than was spent. Hatched: not expanded, or gone. Everything else is an exact sum of counts.</p>
        </Dialog>
    );
}

function Dialog({ title, children }: { title: string; children: ComponentChildren }) {
    const box = useRef<HTMLDialogElement>(null);
    useEffect(() => {
        box.current?.showModal();
    }, []);
    return (
        <dialog ref={box} aria-label={title} onClose={() => { dialog.value = ""; }} onClick={(click) => { if (click.target === box.current) { box.current?.close(); } }}>
            <div class="dialog">
                <header><h2>{title}</h2><button type="button" class="quiet" aria-label="Close" onClick={() => box.current?.close()}>{"\u2715"}</button></header>
                {children}
            </div>
        </dialog>
    );
}

const draft = signal({ name: "", formula: "" });

function Formulas() {
    const fault = useSignal<{ fault: string; at: number } | undefined>(undefined);
    return (
        <Dialog title="Formulas">
            <p class="muted">A sum of events, each times a number: <code>Ir + 10 Bm + 100 LLm</code>. It is then an event like any other, and part of the link.
                A ratio of two sums, <code>1000 L1m / Ir</code>, stands beside costs as the second event: both sums are added up by themselves and divided last.</p>
            {[...formulas.value].map(([name, formula]) => (
                <p key={name}><strong>{name}</strong> = <span class="mono">{formula}</span> <button type="button" class="quiet" onClick={() => removeFormula(name)}>Remove</button></p>
            ))}
            <form class="formula" onSubmit={(submit) => {
                submit.preventDefault();
                fault.value = addFormula(draft.value.name, draft.value.formula);
                if (!fault.value) {
                    look(draft.value.name);
                    draft.value = { name: "", formula: "" };
                }
            }}>
                <input aria-label="Name" placeholder="Name" value={draft.value.name} onInput={(input) => { draft.value = { ...draft.value, name: input.currentTarget.value }; }} />
                <span>=</span>
                <input aria-label="Formula" class="mono wide" placeholder="Ir + 10 Bm" value={draft.value.formula} onInput={(input) => { draft.value = { ...draft.value, formula: input.currentTarget.value }; }} />
                <button type="submit">Add</button>
            </form>
            <FormulaFault fault={fault} />
        </Dialog>
    );
}

function FormulaFault({ fault }: { fault: { value: { fault: string; at: number } | undefined } }) {
    const found = fault.value;
    if (!found) { return null; }
    return <p class="fault" role="alert">{found.at >= 0 && <span class="mono block">{draft.value.formula}{"\n"}{" ".repeat(found.at)}^</span>}{found.fault}</p>;
}

function keys(key: KeyboardEvent) {
    const target = key.target as HTMLElement;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || dialog.value || key.ctrlKey || key.metaKey || key.altKey) { return; }
    const views = VIEWS.filter((view) => view.wanted?.() ?? true);
    const digit = /^Digit([1-9])$/.exec(key.code);
    if (digit && views[Number(digit[1]) - 1]) {
        show(views[Number(digit[1]) - 1].id, key.shiftKey && !sizes.value.one ? 1 : 0);
        key.preventDefault();
        return;
    }
    const acts: Record<string, () => void> = {
        "/": () => document.querySelector<HTMLInputElement>("#search")?.focus(),
        "?": () => { dialog.value = "help"; },
        j: () => document.querySelector<HTMLElement>(".navigator .scroll")?.focus(),
        k: () => document.querySelector<HTMLElement>(".navigator .scroll")?.focus(),
        Backspace: () => history.back(),
        h: () => activate(WHOLE),
        u: () => go(hottest(true)),
        d: () => go(hottest(false)),
        e: () => nextEvent(1),
        E: () => nextEvent(-1),
        x: () => { if (isDiff.value) { comparison.value = comparison.value === "new" ? "base" : "new"; } },
        c: () => void link(),
        t: switchTheme,
        i: () => { if (canTakeApart.value) { inlinedApart.value = !inlinedApart.value; } },
        o: () => void tellContexts(!contextsApart.value),
        r: () => { numbering.value = numbering.value === "parent" ? "percent" : "parent"; },
    };
    const act = acts[key.key];
    if (act) {
        act();
        key.preventDefault();
    }
}

function go(f: number) {
    if (f !== WHOLE) { activate(f); }
}

function measure() {
    sizes.value = { ...sizes.value, one: innerWidth < 1100 };
}

export function Shell() {
    useEffect(() => {
        measure();
        addEventListener("keydown", keys);
        addEventListener("resize", measure);
        return () => {
            removeEventListener("keydown", keys);
            removeEventListener("resize", measure);
        };
    }, []);
    const { side, upper, one } = sizes.value;
    const narrow = innerWidth < 700;
    return (
        <div class="shell" aria-busy={behind.value}>
            <Bar />
            {note.value && <p class="note" role="status">{note.value} <button type="button" class="quiet" onClick={() => { note.value = ""; }}>Close</button></p>}
            {model().pack.fault.value && <p class="note fault" role="alert">{model().pack.fault.value}</p>}
            <div class="work" style={{ gridTemplateColumns: narrow ? "1fr" : `${Math.min(side, innerWidth * 0.6)}px 5px minmax(0, 1fr)` }}>
                {(!narrow || sheet.value) && (
                    <nav class={`navigator${narrow ? " sheet" : ""}`} aria-label="Functions and groups">
                        <div class="tabs" role="tablist" aria-label="Navigator">
                            {(["functions", "groups"] as const).map((id) => (
                                <button key={id} type="button" role="tab" id={`nav-${id}`} aria-controls="nav-body" aria-selected={navigator.value === id} onClick={() => { navigator.value = id; }}>{id === "functions" ? "Functions" : "Groups"}</button>
                            ))}
                        </div>
                        <div class="body" id="nav-body" role="tabpanel" aria-labelledby={`nav-${navigator.value}`}><Guard name="navigator">{navigator.value === "functions" ? <Functions wide={false} /> : <Groups />}</Guard></div>
                    </nav>
                )}
                {!narrow && <Splitter upright={true} label="Width of the navigator" value={side} onMove={(x) => { sizes.value = { ...sizes.value, side: Math.max(220, Math.min(innerWidth - 400, x)) }; }} />}
                <main class="panes" style={{ gridTemplateRows: one ? "minmax(0, 1fr)" : `minmax(0, ${upper}fr) 5px minmax(0, ${1 - upper}fr)` }}>
                    <Pane at={0} />
                    {!one && <Splitter upright={false} label="Height of the upper view" value={upper * 100} onMove={(_, y) => {
                        const box = document.querySelector(".panes")?.getBoundingClientRect();
                        if (box) { sizes.value = { ...sizes.value, upper: Math.max(0.15, Math.min(0.85, (y - box.top) / box.height)) }; }
                    }} />}
                    {!one && <Pane at={1} />}
                </main>
            </div>
            <Menu />
            {dialog.value === "help" && <Help />}
            {dialog.value === "formulas" && <Formulas />}
        </div>
    );
}

export const layoutSizes = sizes;
