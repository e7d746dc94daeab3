// The form that peeks at one key or resets it.

import { actOn, mayAct } from "./actions.js";
import { ask, failure } from "./ask.js";
import { count, keyName, make, put } from "./text.js";

const byId = (id) => document.getElementById(id);
const form = byId("form"), ruleField = byId("form-rule"), partsField = byId("form-parts"), result = byId("result"), dialog = byId("confirm");
let rules = [], shownParts = "", mayReset = true;

// say shows a result. The focus does not go with a button that goes.
function say(bad, ...children) {
  const focused = result.contains(document.activeElement);
  result.className = bad ? "bad" : "";
  result.replaceChildren(...children);
  if (focused) result.focus();
}

// A number of tokens. JSON has 2^64 - 1 for a key without a limit, which is 2^64 here.
const amount = (n) => n >= 2 ** 64 ? "unlimited" : count(n);

function sentence(action, k) {
  if (k.limit === 0) return "This rule refuses every request of the key.";
  if (k.limit >= 2 ** 64) return "This rule has no limit for the key.";
  const left = `${count(k.remaining)} of ${count(k.limit)} left`;
  if (action === "reset") {
    return k.recorded ? `Reset: ${left} now.` : `There was no record of this key: nothing to reset, ${left}.`;
  }
  if (!k.recorded) return `No record of this key: it has its whole limit, ${left}.`;
  if (k.allowed) return `${left}: a request passes now.`;
  return k.retry_after === "never" ? `${left}: no request can pass.` : `${left}: refused now, the next passes ${k.retry_after}.`;
}

function show(action, target, name, k) {
  const facts = [["Key", name], ["Rule", k.rule], ["Limit", amount(k.limit)], ["Remaining", amount(k.remaining)],
    ["Next passes", k.retry_after], ["Whole limit back", k.reset_after]];
  if (k.hash && k.hash !== name) facts.push(["Listed as", k.hash]);
  const parts = [make("p", {}, sentence(action, k)), make("dl", {}, ...facts.flatMap(([dt, dd]) => [make("dt", {}, dt), make("dd", {}, dd)]))];
  const buttons = [];
  const offer = (text, run) => {
    const button = make("button", { type: "button", class: "small" }, text);
    button.addEventListener("click", run);
    buttons.push(button);
  };
  if (action === "peek" && k.recorded && mayReset) offer("Reset this key…", () => reset(target, name));
  if (action === "peek" && mayAct() && rules.find((r) => r.name === target.rule)?.parts.length) offer("Ban or exempt…", () => actOn(target, name));
  if (buttons.length) parts.push(make("div", { class: "buttons" }, ...buttons));
  say(false, ...parts);
}

async function run(action, target, name) {
  try {
    show(action, target, name, await ask("/key/" + action, target));
  } catch (error) {
    say(true, make("p", {}, failure(error)));
  }
}

// peekClient looks at a client, under every rule that has it as a key, and shows what it has left.
export async function peekClient(target, name) {
  try {
    const { keys } = await ask("/client/peek", target);
    if (keys.length === 1 && target.hash) show("peek", { rule: keys[0].rule, hash: target.hash }, name, keys[0]);
    else showClient(name, keys);
  } catch (error) {
    say(true, make("p", {}, failure(error)));
  }
  result.scrollIntoView({ block: "nearest" });
}

function showClient(name, keys) {
  const refusing = keys.filter((k) => !k.allowed).length;
  const used = keys.filter((k) => k.recorded), whole = keys.length - used.length;
  const rows = used.map((k) => make("tr", {}, make("th", { scope: "row" }, k.rule), make("td", {}, `${count(k.remaining)} of ${count(k.limit)}`),
    make("td", { class: k.allowed ? "" : "bad" }, k.retry_after)));
  const others = whole ? [make("p", { class: "note" }, `${used.length ? "Of the others" : "Of all rules"} it has used nothing.`)] : [];
  say(false, make("p", {}, `${name}: ${refusing ? `refused now by ${count(refusing)} of ${count(keys.length)}` : `passes ${count(keys.length)}`} ${keys.length === 1 ? "rule" : "rules"}.`),
    ...(used.length ? [make("table", {}, make("thead", {}, make("tr", {}, ...["rule", "left", "next passes"].map((head) => make("th", { scope: "col" }, head)))), make("tbody", {}, ...rows))] : []), ...others);
}

// Where a reset reaches, by the mode of the rule.
const reach = {
  local: "",
  strict: " That holds for all machines that share the rule.",
  leased: " That holds for all machines that share the rule; what others have in hand of it they can spend, too.",
};

function reset(target, name) {
  const mode = rules.find((r) => r.name === target.rule)?.mode;
  byId("confirm-text").textContent = `${name} gets its whole limit of rule ${target.rule} back at once.${reach[mode] ?? ""}`;
  dialog.returnValue = "";
  dialog.onclose = () => {
    if (dialog.returnValue === "reset") run("reset", target, name);
  };
  dialog.showModal();
}

// everyRule is what the form calls all rules that have the client's address as their key.
const everyRule = "\nevery";
const isByAddress = (r) => r.parts.length === 1 && r.parts[0] === "ip";

const chosen = () => rules.find((r) => r.name === ruleField.value);

function typed() {
  const inputs = [...partsField.querySelectorAll("input")];
  const parts = inputs.map((input) => (input.dataset.label === "ip" ? input.value.trim() : input.value));
  return [{ rule: ruleField.value, parts }, parts.join(" · ") || "everyone"];
}

// showParts makes a field for each part of the rule's key, unless they are there.
function showParts() {
  const parts = ruleField.value === everyRule ? ["ip"] : chosen()?.parts ?? [];
  byId("form-reset").hidden = !mayReset || ruleField.value === everyRule;
  const id = JSON.stringify([ruleField.value, parts]);
  if (id === shownParts) return;
  shownParts = id;
  partsField.replaceChildren(...parts.map((label) => {
    const input = make("input", { required: "", autocomplete: "off", autocapitalize: "off", spellcheck: "false", "data-label": label });
    if (label === "ip") input.placeholder = "192.0.2.1";
    return make("label", {}, keyName(label), input);
  }));
}

// showForm offers the rules that have keys to look at, and to reset them if they may be.
export function showForm(all, reset) {
  mayReset = reset;
  put(byId("form-may"), reset ? ", or give it its whole limit back." : ".");
  const before = rules.map((r) => r.name).join("\n");
  rules = all.filter((r) => r.form).map((r) => ({ name: r.name, mode: r.mode, parts: r.parts ?? [] }));
  if (rules.map((r) => r.name).join("\n") !== before || !ruleField.options.length) {
    const was = ruleField.value;
    const options = rules.map((r) => make("option", { value: r.name }, r.name));
    if (rules.filter(isByAddress).length > 1) options.push(make("option", { value: everyRule }, "every rule, by client address"));
    ruleField.replaceChildren(...options);
    if (options.some((o) => o.value === was)) ruleField.value = was;
  }
  form.hidden = rules.length === 0;
  byId("form-none").hidden = rules.length > 0;
  showParts();
}

ruleField.addEventListener("change", showParts);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  const [target, name] = typed();
  if (target.rule === everyRule) peekClient({ address: target.parts[0] }, name);
  else run("peek", target, name);
});
byId("form-reset").addEventListener("click", () => {
  if (form.reportValidity()) reset(...typed());
});
