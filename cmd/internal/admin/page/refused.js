// The list of the keys that are refused most. Rows are kept for the same key, so that a button does
// not vanish under a finger or lose the focus.

import { count, make, percent, put } from "./text.js";
import { word } from "./words.js";

const list = document.getElementById("refused");
const empty = document.getElementById("refused-empty");
const note = document.getElementById("refused-note");
const rows = new Map();

const named = 3; // rules of a key

function makeRow(key, onPeek) {
  const row = { times: make("b"), error: make("small"), rule: make("small"), share: make("div", { class: "share" }) };
  const button = make("button", { class: "small", "aria-label": `Look up ${key.key || key.hash}` }, "Look up");
  button.addEventListener("click", () => onPeek({ hash: key.hash }, key.key || key.hash));
  row.code = make("code");
  row.act = make("button", { class: "small", "aria-label": `Ban or exempt ${key.key || key.hash}` }, "Act…");
  row.act.addEventListener("click", () => row.onAct({ rule: row.by, hash: key.hash }, key.key || key.hash));
  row.button = button;
  row.element = make("li", {}, make("div", { class: "who" }, row.code, row.rule),
    make("div", { class: "times" }, row.times, row.error), make("div", { class: "do" }, button, row.act), row.share);
  return row;
}

// showRefused lists them. onAct is null where the caller may not act.
export function showRefused(top, rules, onPeek, onAct) {
  const withForm = new Map(rules.map((r) => [r.name, r]));
  const keys = top?.keys ?? [];
  const present = new Set();
  keys.forEach((key, i) => {
    const id = `${key.rules[0].rule}\n${key.hash}`;
    present.add(id);
    if (!rows.has(id)) rows.set(id, makeRow(key, onPeek));
    const row = rows.get(id);
    put(row.code, key.key || key.hash);
    row.code.title = key.key || key.hash;
    put(row.rule, key.rules.slice(0, named).map(({ rule, least }) => rule + (key.rules.length > 1 ? ` ${count(least)}` : "") + (withForm.get(rule)?.shadow ? ", would be refused" : "")).join(", ") +
      (key.rules.length > named ? ` and ${count(key.rules.length - named)} more` : ""));
    put(row.times, count(key.least) + (key.most > key.least ? "+" : ""));
    put(row.error, key.most > key.least ? `at most ${count(key.most)}` : percent(key.least, top.all));
    row.share.style.width = (100 * key.least) / Math.max(1, keys[0].least) + "%";
    row.button.hidden = !key.rules.some(({ rule }) => withForm.get(rule)?.form);
    row.onAct = onAct;
    row.by = key.rules.find(({ rule }) => withForm.get(rule)?.form && withForm.get(rule).parts?.length)?.rule;
    row.act.hidden = !onAct || !row.by;
    if (list.children[i] !== row.element) list.insertBefore(row.element, list.children[i] ?? null);
  });
  for (const [id, row] of rows) {
    if (!present.has(id)) {
      row.element.remove();
      rows.delete(id);
    }
  }
  empty.hidden = keys.length > 0;
  const here = rules.some((r) => r.leases) ? " by this machine" : "";
  put(empty, top ? `Nobody was refused${here} in the last minute.` : `Keys are not shown: ${word.hidden}.`);
  note.hidden = keys.length === 0;
  const bounds = keys.some((k) => k.most > k.least) ? " There are too many keys to count each: a number is what is certain, and “at most” its bound." : "";
  put(note, `Of ${count(top?.all ?? 0)} refusals${here} in the last 50 to 60 seconds.${bounds}`);
}
