// Links that open a source line in an editor, where the report was made with --editor.
//
// Names of files are hostile: they are percent-encoded, and only what the maker of the report named is the scheme.

import type { ComponentChildren } from "preact";
import { model } from "../state/store.ts";

/** Schemes that run something, or show what is not an editor's, in the page. */
const FORBIDDEN = /^(javascript|data|vbscript|blob|about|file|view-source|https?|wss?|ftp):/i;

/** Where a line of a file is opened; undefined if that is not known. */
export function editorLink(template: string | undefined, path: string | undefined, line: number): string | undefined {
    if (!template || !path?.startsWith("/") || !/^[a-z][a-z0-9+.-]*:/i.test(template) || FORBIDDEN.test(template)) { return undefined; }
    let file: string;
    try {
        file = path.split("/").map(encodeURIComponent).join("/");
    } catch {
        // Half of a pair of surrogates.
        return undefined;
    }
    return template.replaceAll("{line}", String(Number.isFinite(line) ? Math.max(1, Math.floor(line)) : 1)).replaceAll("{file}", () => file);
}

/** The same of a file of the report. */
export function linkOf(file: number, line: number): string | undefined {
    const { head } = model().pack;
    const source = head.sources.find((known) => known.file === file);
    return editorLink(head.editor, source?.path ?? model().files[file], line);
}

export function InEditor({ file, line, children }: { file: number; line: number; children: ComponentChildren }) {
    const link = linkOf(file, line);
    if (!link) { return <>{children}</>; }
    return <a href={link} class="editor" title="Open in the editor" onClick={(click) => click.stopPropagation()}>{children}</a>; // lint: encoded by editorLink
}
