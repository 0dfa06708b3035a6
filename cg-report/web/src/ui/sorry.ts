// What stands in the page if there is nothing else.

/** Says in a sentence why there is nothing to see. */
export function sorry(text: string) {
    const place = document.getElementById("app");
    if (place) {
        const line = document.createElement("p");
        line.className = "sorry";
        line.setAttribute("role", "alert");
        line.textContent = text;
        place.replaceChildren(line);
    }
}
