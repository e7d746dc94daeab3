// The card of one rule, and its row in the table that says the same.

import { Chart } from "./chart.js";
import { bytes, count, make, percent, put, rate } from "./text.js";

const modes = {
  local: "kept on this machine",
  strict: "kept in the store, which is asked for every request",
  leased: "kept in the store, which lends this machine tokens in advance",
};

export class RuleCard {
  constructor(rule, points) {
    this.chart = new Chart(points);
    this.tag = make("span", { class: "tag", title: "counts, but never refuses" }, "shadow");
    this.mode = make("span", { class: "tag mode" });
    this.policy = make("p");
    this.meaning = make("p", { class: "meaning" });
    this.leases = make("p", { class: "table" });
    this.bar = make("i");
    this.meter = make("div", { class: "meter", role: "meter", "aria-label": "Occupancy of the table", title: "The mark is how full the table is made to be", "aria-valuemin": 0, "aria-valuemax": 100 }, this.bar);
    this.keys = make("span");
    this.lost = make("span");
    this.table = make("div", {}, this.meter, make("div", { class: "table" }, this.keys, this.lost));
    this.element = make("article", { class: "rule", "aria-label": "Rule " + rule.name },
      make("header", {}, make("h3", {}, rule.name), this.tag, this.mode, this.policy, this.meaning), this.chart.element, this.table, this.leases);
    this.cells = Array.from({ length: 8 }, () => make("td"));
    this.row = make("tr", {}, make("th", { scope: "row" }, rule.name), ...this.cells);
  }

  show(rule) {
    this.rule = rule;
    this.refusing = rule.shadow ? "shadow_refused" : "refused";
    this.tag.hidden = !rule.shadow;
    put(this.policy, rule.policy);
    put(this.meaning, rule.for ? `for ${rule.for}, by ${rule.by}` : "");
    put(this.mode, rule.mode);
    this.mode.title = modes[rule.mode];
    this.#showTable(rule.table);
    this.#showLeases(rule.leases, rule.mode);
    this.chart.draw(rule.shadow);
    ["allowed", this.refusing].forEach((o, i) => {
      put(this.cells[3 * i], rate(rule.rate[o]));
      put(this.cells[3 * i + 1], rate(this.chart.mean(o, 60)));
      put(this.cells[3 * i + 2], rate(this.chart.peak(o)));
      put(this.cells[6 + i], count(rule.total[o]));
    });
  }

  #showTable(t) {
    this.table.hidden = !t;
    if (!t) return;
    const full = (100 * t.keys) / t.slots;
    this.bar.style.width = Math.min(full, 100) + "%";
    this.meter.classList.toggle("over", full > 60);
    this.meter.setAttribute("aria-valuenow", full.toFixed(1));
    const keys = `${count(t.keys)} ${t.keys === 1 ? "key" : "keys"}, ${percent(t.keys, t.slots)} of ${count(t.slots)} slots, ${bytes(t.bytes)}`;
    this.meter.setAttribute("aria-valuetext", keys);
    put(this.keys, keys);
    const lost = [];
    if (t.evictions) lost.push(`${count(t.evictions)} keys evicted, ${count(t.forgiven_tokens)} tokens forgiven`);
    if (t.no_room_refusals) lost.push(`${count(t.no_room_refusals)} refused for want of room`);
    if (t.unrecorded_requests) lost.push(`${count(t.unrecorded_requests)} admitted unrecorded`);
    put(this.lost, lost.join(", ") || "nothing forgiven");
    this.lost.classList.toggle("bad", lost.length > 0);
  }

  #showLeases(l, mode) {
    this.leases.hidden = !l;
    if (!l) return;
    const held = mode === "leased" ? `${count(l.keys)} ${l.keys === 1 ? "lease" : "leases"}, ${count(l.held)} tokens in hand, ${count(l.debt)} owed` : "the store is asked for every request";
    put(this.leases, held + (l.fallbacks ? `; ${count(l.fallbacks)} decided without the store (${l.on_loss})` : ""));
    this.leases.classList.toggle("bad", l.fallbacks > 0);
  }

  // What rules are sorted by.
  get order() {
    const r = this.rule;
    return {
      refused: r.rate[this.refusing] || this.chart.mean(this.refusing, 60),
      requests: this.chart.mean("allowed", 60) + this.chart.mean(this.refusing, 60),
      full: r.table ? r.table.keys / r.table.slots : 0,
    };
  }
}
