// The form that peeks at one key or resets it.

import { count, keyName, make, put } from "./text.js";

const byId = (id) => document.getElementById(id);
const form = byId("form"), ruleField = byId("form-rule"), partsField = byId("form-parts"), result = byId("result"), dialog = byId("confirm");
let rules = [], shownParts = "", mayReset = true;

async function ask(action, target) {
  const answer = await fetch("/key/" + action, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(target),
  });
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error);
  return body;
}

// say shows a result. The focus does not go with a button that goes.
function say(bad, ...children) {
  const focused = result.contains(document.activeElement);
  result.className = bad ? "bad" : "";
  result.replaceChildren(...children);
  if (focused) result.focus();
}

function sentence(action, k) {
  const left = `${count(k.remaining)} of ${count(k.limit)} left`;
  if (action === "reset") {
    return k.recorded ? `Reset: ${left} now.` : `There was no record of this key: nothing to reset, ${left}.`;
  }
  if (!k.recorded) return `No record of this key: it has its whole limit, ${left}.`;
  if (k.allowed) return `${left}: a request passes now.`;
  return k.retry_after === "never" ? `${left}: no request can pass.` : `${left}: refused now, the next passes ${k.retry_after}.`;
}

function show(action, target, name, k) {
  const facts = [["Key", name], ["Rule", k.rule], ["Limit", count(k.limit)], ["Remaining", count(k.remaining)],
    ["Next passes", k.retry_after], ["Whole limit back", k.reset_after]];
  if (k.hash && k.hash !== name) facts.push(["Listed as", k.hash]);
  const parts = [make("p", {}, sentence(action, k)), make("dl", {}, ...facts.flatMap(([dt, dd]) => [make("dt", {}, dt), make("dd", {}, dd)]))];
  if (action === "peek" && k.recorded && mayReset) {
    const button = make("button", { type: "button", class: "small" }, "Reset this key…");
    button.addEventListener("click", () => reset(target, name));
    parts.push(make("div", { class: "buttons" }, button));
  }
  say(false, ...parts);
}

async function run(action, target, name) {
  try {
    show(action, target, name, await ask(action, target));
  } catch (error) {
    say(true, make("p", {}, error instanceof TypeError ? "The server cannot be reached." : error.message));
  }
}

// peek looks at a key and shows what it has.
export async function peek(target, name) {
  await run("peek", target, name);
  result.scrollIntoView({ block: "nearest" });
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

const chosen = () => rules.find((r) => r.name === ruleField.value);

function typed() {
  const inputs = [...partsField.querySelectorAll("input")];
  const parts = inputs.map((input) => (input.dataset.label === "ip" ? input.value.trim() : input.value));
  return [{ rule: ruleField.value, parts }, parts.join(" · ") || "everyone"];
}

// showParts makes a field for each part of the rule's key, unless they are there.
function showParts() {
  const parts = chosen()?.parts ?? [];
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
  byId("form-reset").hidden = !reset;
  put(byId("form-may"), reset ? ", or give it its whole limit back." : ".");
  const before = rules.map((r) => r.name).join("\n");
  rules = all.filter((r) => r.form).map((r) => ({ name: r.name, mode: r.mode, parts: r.parts ?? [] }));
  if (rules.map((r) => r.name).join("\n") !== before || !ruleField.options.length) {
    const was = ruleField.value;
    ruleField.replaceChildren(...rules.map((r) => make("option", { value: r.name }, r.name)));
    if (rules.some((r) => r.name === was)) ruleField.value = was;
  }
  form.hidden = rules.length === 0;
  byId("form-none").hidden = rules.length > 0;
  showParts();
}

ruleField.addEventListener("change", showParts);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  run("peek", ...typed());
});
byId("form-reset").addEventListener("click", () => {
  if (form.reportValidity()) reset(...typed());
});
