// The live page: takes the history and then a state each second, and shows them.

import { actOn, mayAct, showActions } from "./actions.js";
import { caller, loadCaller } from "./ask.js";
import { RuleCard } from "./rule.js";
import { peekClient, showForm } from "./form.js";
import { Line } from "./line.js";
import { showRefused } from "./refused.js";
import { TableMeter } from "./table.js";
import { showUpstreams } from "./upstreams.js";
import { bytes, count, duration, make, percent, plainly, put, rate } from "./text.js";
import { speakAs, word } from "./words.js";

const byId = (id) => document.getElementById(id);
const list = byId("rules"), numbers = byId("numbers"), filter = byId("filter"), sort = byId("sort");
const cards = new Map();
const spans = {
  "5m": { words: "five minutes", ago: "5 minutes ago" },
  "1h": { words: "hour", ago: "1 hour ago" },
  "24h": { words: "day", ago: "24 hours ago" },
};
let span = "5m", longer = null; // the history of a longer span, if that is shown
let past = { seq: 0, points: 300, rules: {} };
let latest = null;

function chip(element, text, kind = "") {
  element.hidden = false;
  element.className = "chip " + kind;
  put(element, text);
}

// when writes a time of today without its date.
function when(at) {
  const time = at.toLocaleTimeString();
  return at.toDateString() === new Date().toDateString() ? time : `${at.toLocaleDateString()} ${time}`;
}

function showHead(state) {
  speakAs(state.program);
  document.title = state.program;
  put(byId("program"), state.program);
  put(byId("version"), state.version);
  chip(byId("ready"), state.ready ? "ready" : "not ready: " + state.why_not_ready, state.ready ? "" : "bad");
  const last = state.reload;
  byId("failed").hidden = !last || last.ok;
  byId("reload").hidden = !last;
  if (!last) return;
  const at = when(new Date(last.at));
  chip(byId("reload"), last.ok ? `rules read ${at}, generation ${count(last.generation)}` : "reload failed", last.ok ? "" : "bad");
  if (!last.ok) put(byId("failed"), `The rules read ${at} are not in force; the ones before still are (generation ${count(last.generation)}).\n${last.error ?? ""}`);
}

// amount writes a number with its unit in small.
function amount(element, number, unit) {
  const text = number + unit;
  if (element.textContent !== text) element.replaceChildren(number, make("small", {}, unit));
}

// showRequests shows what clients see: a request counts once, however many rules it matches.
function showRequests(requests) {
  if (!requests) return;
  amount(byId("requests-rate"), rate(requests.rate), " /s");
  amount(byId("requests-refused"), percent(requests.refused, requests.rate), `, ${rate(requests.refused)} /s`);
  put(byId("requests-in-flight"), `, ${count(requests.in_flight)} in flight`);
  amount(byId("requests-failures"), percent(requests.failures, requests.rate), `, ${rate(requests.failures)} /s`);
  byId("requests-failures-box").classList.toggle("bad", requests.failures > 0);
  put(byId("requests-failures-name"), word.failures);
  byId("requests-time-box").hidden = !requests.timed;
  const t = requests.times;
  if (t) {
    const within = (ms) => (ms < t.most_ms ? "" : "over ") + duration(ms);
    amount(byId("requests-time"), within(t.p50_ms), " or less for half");
    put(byId("requests-slow"), `95 % in ${within(t.p95_ms)}, 99 % in ${within(t.p99_ms)}`);
  } else {
    put(byId("requests-time"), "–");
    put(byId("requests-slow"), "");
  }
}

// showTables tells what the tables of all rules hold, and whether keys had to be forgotten. Each that several rules share
// is shown here, others with their rules.
const meters = new Map();
function showTables(rules, shared, resident) {
  const tables = [...shared, ...rules.map((r) => r.table).filter(Boolean)];
  const sum = (read) => tables.reduce((all, t) => all + read(t), 0);
  const evictions = sum((t) => t.evictions);
  const lost = evictions ? ` ${count(evictions)} keys were forgotten for want of room: raise ${word.room}.` : "";
  put(byId("tables"), `${count(sum((t) => t.keys))} keys are known, in ${bytes(sum((t) => t.bytes))} of memory.${resident ? ` The program has ${bytes(resident)}.` : ""}${lost}`);
  byId("tables").classList.toggle("bad", evictions > 0);
  byId("tables").hidden = tables.length === 0;
  byId("shared-box").hidden = shared.length === 0;
  put(byId("shared-name"), `${shared.length === 1 ? "One table" : count(shared.length) + " tables"}`);
  for (const t of shared) {
    if (!meters.has(t.name)) {
      meters.set(t.name, new TableMeter(plainly(t.name)));
      byId("shared").append(meters.get(t.name).element);
    }
    meters.get(t.name).show(t);
  }
  for (const [name, meter] of meters) {
    if (shared.some((t) => t.name === name)) continue;
    meter.element.remove();
    meters.delete(name);
  }
}

// showStore tells how the store does that rules are kept in.
function showStore(store) {
  byId("store").hidden = !store;
  if (!store) return;
  const parts = store.parts > 1 ? `${count(store.lost)} of ${count(store.parts)} parts` : "";
  chip(byId("store-chip"), store.lost ? `store lost ${parts}`.trim() : "store up", store.lost ? "bad" : "");
  put(byId("store-text"), `${count(store.calls)} calls, ${count(store.failures)} failed, ${count(store.timeouts)} out of time`);
}

// Where there are more rules than that each has a line, most refused first.
const fewRules = 8;

function showRules(rules, moved) {
  let fresh = false;
  const many = rules.length > fewRules;
  if (list.classList.contains("many") !== many) {
    list.classList.toggle("many", many); // before a chart measures itself
    list.replaceChildren();
    if (sort.value === (many ? "file" : "refused")) sort.value = many ? "refused" : "file";
  }
  const names = new Set(rules.map((r) => r.name));
  for (const [name, card] of cards) {
    if (names.has(name)) continue;
    card.element.remove();
    card.line?.remove();
    card.row.remove();
    cards.delete(name);
    fresh = true;
  }
  for (const rule of rules) {
    let card = cards.get(rule.name);
    if (!card) {
      card = new RuleCard(rule, past.points);
      card.chart.load(past.rules[rule.name]);
      card.chart.showSpan(spans[span], longer, longer?.rules[rule.name]);
      cards.set(rule.name, card);
      fresh = true;
    } else if (moved) {
      card.chart.push(rule.rate);
    }
    card.show(rule, Date.parse(latest.at));
    if (Boolean(card.line) !== many) {
      card.element.remove();
      card.line?.remove();
      card.line = many ? new Line(card) : null;
      fresh = true;
    }
  }
  byId("tools").hidden = rules.length < 5;
  byId("no-rules").hidden = rules.length > 0;
  put(byId("count"), rules.length ? String(rules.length) : "");
  if (fresh || latest.seq >= arranged + 5) arrange(); // lines that move all the time cannot be read
  for (const card of cards.values()) card.draw();
  drawNumbers();
}

// box is what stands for a rule in the list.
const box = (card) => card.line?.element ?? card.element;

// drawNumbers fills the table, if that is open.
function drawNumbers() {
  if (byId("numbers-box").open) for (const card of cards.values()) card.drawRow();
}

// arrange filters and sorts. A card moves only if its place is another.
let arranged = 0; // when, in seconds that were counted
function arrange() {
  if (!latest) return;
  arranged = latest.seq;
  const wanted = filter.value.trim().toLowerCase();
  let shown = latest.rules.map((r) => cards.get(r.name));
  for (const card of shown) {
    box(card).hidden = !(card.rule.name + " " + card.rule.policy).toLowerCase().includes(wanted);
  }
  byId("no-match").hidden = shown.length === 0 || shown.some((c) => !box(c).hidden);
  if (sort.value !== "file") shown = shown.toSorted((a, b) => b.order[sort.value] - a.order[sort.value]);
  shown.forEach((card, i) => {
    if (list.children[i] !== box(card)) list.insertBefore(box(card), list.children[i] ?? null);
    if (numbers.children[i] !== card.row) numbers.insertBefore(card.row, numbers.children[i] ?? null);
  });
}

function showState(state) {
  const moved = state.seq > past.seq;
  past.seq = state.seq;
  latest = state;
  showHead(state);
  showRequests(state.requests);
  showTables(state.rules, state.tables, state.resident_bytes);
  showUpstreams(state.upstreams, Date.parse(state.at));
  showStore(state.store);
  document.body.classList.toggle("with-store", Boolean(state.store));
  showRules(state.rules, moved);
  showActions(state.actions, state.rules);
  showRefused(state.refused, state.rules, peekClient, mayAct() ? actOn : null);
  showForm(state.rules, state.reset && caller.may_change);
}

// showSpan draws what longer holds, or the last five minutes.
function showSpan() {
  for (const [name, card] of cards) {
    card.chart.showSpan(spans[span], longer, longer?.rules[name]);
    card.draw();
  }
}

// loadSpan asks for the history of a longer span, again as long as it is shown.
let again;
async function loadSpan() {
  clearTimeout(again);
  const wanted = span;
  if (wanted === "5m") {
    longer = null;
    return showSpan();
  }
  try {
    const answer = await fetch("/history.json?span=" + wanted);
    const history = answer.ok ? await answer.json() : null;
    if (wanted !== span) return;
    if (history) {
      longer = history;
      showSpan();
    }
  } catch {
    // The connection is lost, which the page says already.
  }
  if (wanted === span) again = setTimeout(loadSpan, 10000);
}

byId("spans").addEventListener("change", (event) => {
  span = event.target.value;
  loadSpan();
});

// The browser connects again by itself unless the answer was an error; then this does.
function connect() {
  const events = new EventSource("/events");
  events.addEventListener("history", (event) => {
    past = JSON.parse(event.data);
    for (const [name, card] of cards) card.chart.load(past.rules[name]);
  });
  events.addEventListener("state", (event) => {
    chip(byId("link"), "live");
    byId("lost").hidden = true;
    showState(JSON.parse(event.data));
  });
  events.addEventListener("error", () => {
    chip(byId("link"), "not connected", "bad");
    byId("lost").hidden = false;
    put(byId("lost"), "The connection is lost, so the numbers stand still. Trying again…");
    if (events.readyState === EventSource.CLOSED) setTimeout(connect, 3000);
  });
}

filter.addEventListener("input", arrange);
sort.addEventListener("change", arrange);
byId("numbers-box").addEventListener("toggle", drawNumbers);
loadCaller(() => latest && showState(latest));
connect();
