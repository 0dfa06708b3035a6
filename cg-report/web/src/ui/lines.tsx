// A list of equally tall lines of any length; only those in sight are in the document.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

export const LINE = 20;

export function Lines({ label, count, line, goal, width, overlay, onKey }: { label: string; count: number;
    line: (at: number) => ComponentChildren;
    /** The line to scroll to, whenever this changes. */
    goal: { at: number } | null;
    /** How wide the widest line may be, in letters. */
    width: number;
    /** What is painted beside lines from `first` to `last`. */
    overlay?: (first: number, last: number) => ComponentChildren;
    onKey?: (event: KeyboardEvent) => void }) {
    const body = useRef<HTMLDivElement>(null);
    const [top, setTop] = useState(0);
    const [room, setRoom] = useState(400);
    useLayoutEffect(() => {
        const element = body.current;
        if (!element) { return undefined; }
        const measure = () => setRoom(element.clientHeight);
        measure();
        const observer = new ResizeObserver(measure);
        observer.observe(element);
        return () => observer.disconnect();
    }, []);
    useEffect(() => {
        const element = body.current;
        if (!element || !goal) { return; }
        const y = goal.at * LINE;
        if (y < element.scrollTop + LINE || y > element.scrollTop + element.clientHeight - 2 * LINE) {
            element.scrollTop = Math.max(0, y - element.clientHeight / 3);
        }
    }, [goal]);
    const first = Math.max(0, Math.floor(top / LINE) - 6);
    const last = Math.min(count, Math.ceil((top + room) / LINE) + 6);
    const shown = [];
    for (let at = first; at < last; at++) { shown.push(at); }
    return (
        <div class="lines scroll" ref={body} tabIndex={0} role="table" aria-label={label} aria-rowcount={count} onKeyDown={onKey}
            onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
            <div class="space" style={{ height: `${count * LINE}px`, minWidth: `${width}ch` }}>
                {overlay?.(first, last)}
                {shown.map((at) => (
                    <div key={at} class="at" style={{ transform: `translateY(${at * LINE}px)` }} role="row" aria-rowindex={at + 1}>{line(at)}</div>
                ))}
            </div>
        </div>
    );
}
