// What operators do to clients for a time: the list, and the dialog that asks for an action. Rows are kept for the same
// action, so that a button does not vanish under a finger or lose the focus.

import { ask, caller, failure } from "./ask.js";
import { count, make, put } from "./text.js";

const byId = (id) => document.getElementById(id);
const box = byId("actions-box"), list = byId("actions"), empty = byId("actions-empty"), begin = byId("act-new");
const dialog = byId("act"), form = byId("act-form"), kind = byId("act-kind"), what = byId("act-what"), network = byId("act-network"),
  ruleField = byId("act-rule"), who = byId("act-who"), why = byId("act-why"), lasts = byId("act-for"), said = byId("act-said"), send = byId("act-send");
const rows = new Map();
const verbs = { ban: "Ban", exempt: "Exempt", shadow: "Shadow" };
const meanings = {
  ban: "Requests are answered 403, before any rule takes something.",
  exempt: "Rules are not applied.",
  shadow: "Rules count, and refuse nothing.",
};
let given = null, confirmed = false, rules = [];

// left writes seconds as people do.
function left(seconds) {
  if (seconds < 60) return `${seconds} s left`;
  if (seconds <= 3600) return `${Math.ceil(seconds / 60)} min left`;
  const minutes = Math.ceil(seconds / 60);
  if (minutes < 2880) return `${Math.floor(minutes / 60)} h ${minutes % 60} min left`;
  return `${Math.ceil(minutes / 1440)} days left`;
}

const targetOf = (a) => a.network ?? (a.key ? `${a.key} of ${a.rule}` : `the rule ${a.rule}`);

function makeRow(a) {
  const row = { left: make("small"), why: make("small"), end: make("button", { type: "button", class: "small", "aria-label": `End ${a.kind} of ${targetOf(a)}` }, "End") };
  row.target = make("code");
  row.end.addEventListener("click", () => end(a, row));
  row.element = make("li", {}, make("div", { class: "who" }, make("span", { class: "tag " + a.kind }, a.kind), " ", row.target, row.why), row.left, row.end);
  return row;
}

async function end(a, row) {
  try {
    await ask("/actions/end", { id: a.id, who: caller.sure ? "" : name() || caller.who || "the live page" });
    row.element.remove();
    rows.delete(a.id);
    begin.focus();
  } catch (error) {
    put(row.why, failure(error));
  }
}

// showActions lists the actions in force; null where there are none to be.
export function showActions(actions, all) {
  box.hidden = !actions;
  if (!actions) return;
  rules = all;
  begin.hidden = !caller.may_change;
  actions.forEach((a, i) => {
    if (!rows.has(a.id)) rows.set(a.id, makeRow(a));
    const row = rows.get(a.id);
    put(row.target, targetOf(a));
    put(row.why, `${a.who}: ${a.why} — ${count(a.hits)} ${a.hits === 1 ? "request" : "requests"}${a.applies ? "" : "; it does not apply: the rule is gone, or has other keys"}`);
    put(row.left, left(a.left_seconds));
    row.end.hidden = !caller.may_change;
    if (list.children[i] !== row.element) list.insertBefore(row.element, list.children[i] ?? null);
  });
  for (const [id, row] of rows) {
    if (actions.some((a) => a.id === id)) continue;
    row.element.remove();
    rows.delete(id);
  }
  empty.hidden = actions.length > 0;
}

// mayAct reports whether there are actions, and the caller may begin one.
export const mayAct = () => !box.hidden && caller.may_change;

const name = () => localStorage.getItem("who") ?? "";

// actOn asks for an action on a key, {rule, parts} or {rule, hash}, by the name that it is shown by.
export function actOn(target, shown) {
  given = { target, shown };
  open("given");
}

function open(choice) {
  what.replaceChildren(...(given ? [make("option", { value: "given" }, `${given.shown} of ${given.target.rule}`)] : []),
    make("option", { value: "network" }, "a network or an address"), make("option", { value: "rule" }, "a whole rule"));
  what.value = choice;
  ruleField.replaceChildren(...rules.map((r) => make("option", { value: r.name }, r.name)));
  byId("act-who-box").hidden = caller.sure;
  who.required = !caller.sure;
  who.value = caller.sure ? "" : caller.who || name();
  why.value = "";
  changed();
  dialog.showModal();
}

// changed takes back what was said of another action.
function changed() {
  confirmed = false;
  byId("act-network-box").hidden = what.value !== "network";
  network.required = what.value === "network";
  byId("act-rule-box").hidden = what.value !== "rule";
  put(byId("act-meaning"), meanings[kind.value]);
  put(send, verbs[kind.value]);
  said.hidden = true;
}

begin.addEventListener("click", () => {
  given = null;
  open("network");
});
byId("act-cancel").addEventListener("click", () => dialog.close());
for (const field of [kind, what, network, ruleField, lasts]) field.addEventListener("input", changed);

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const request = { kind: kind.value, for: lasts.value, why: why.value.trim(), who: who.value.trim(), confirm: confirmed };
  if (what.value === "given") Object.assign(request, given.target);
  else if (what.value === "rule") request.rule = ruleField.value;
  else request.network = network.value.trim();
  if (!caller.sure) localStorage.setItem("who", request.who);
  send.disabled = true;
  try {
    await ask("/actions", request);
    dialog.close();
  } catch (error) {
    said.hidden = false;
    confirmed = error.status === 409;
    said.replaceChildren(...(confirmed ? error.body.warnings : [failure(error)]).map((text) => make("p", {}, text[0].toUpperCase() + text.slice(1) + (confirmed ? "." : ""))));
    put(send, verbs[kind.value] + (confirmed ? " all the same" : ""));
  } finally {
    send.disabled = false;
  }
});
