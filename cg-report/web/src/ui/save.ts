// How the reader saves what is seen: a text or a picture as a file, and tables as CSV.

/** Lets the reader save a text or a picture. */
export function save(name: string, content: Blob) {
    const link = document.createElement("a");
    const place = URL.createObjectURL(content);
    Object.assign(link, { href: place, download: name });  // lint: a blob of our own
    link.click();
    setTimeout(() => URL.revokeObjectURL(place), 10_000);
}

/** A cell of CSV. What a spreadsheet would take for a formula is made text. */
export function csvCell(value: string | number): string {
    if (typeof value === "number") { return String(value); }
    const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll("\"", "\"\"")}"` : safe;
}

export function csv(head: string[], rows: Iterable<(string | number)[]>): string {
    const lines = [head.map(csvCell).join(",")];
    for (const row of rows) { lines.push(row.map(csvCell).join(",")); }
    return `${lines.join("\n")}\n`;
}
