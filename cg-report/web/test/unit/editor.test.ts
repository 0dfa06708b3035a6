// Names of files become parts of addresses and never more.
import assert from "node:assert/strict";
import { test } from "node:test";
import { editorLink } from "../../src/ui/editor.tsx";

const TEMPLATE = "vscode://file{file}:{line}";

test("names of files are percent-encoded", () => {
    assert.equal(editorLink(TEMPLATE, "/a b/c.c", 7), "vscode://file/a%20b/c.c:7");
    assert.equal(editorLink(TEMPLATE, "/a?x#y&{line}\"<\u202e", 0), "vscode://file/a%3Fx%23y%26%7Bline%7D%22%3C%E2%80%AE:1");
    assert.equal(editorLink("e:{file}&{file}", "/$&", 1), "e:/%24%26&/%24%26");
});

test("what is no editor or no file has no link", () => {
    for (const template of ["javascript:alert('{file}')", "DATA:text/html,{file}", "https://x/{file}", "{file}", " vscode://{file}", undefined]) {
        assert.equal(editorLink(template, "/a.c", 1), undefined, template);
    }
    for (const path of ["a.c", "???", "", undefined, "/\ud800"]) { assert.equal(editorLink(TEMPLATE, path, 1), undefined, path); }
});
