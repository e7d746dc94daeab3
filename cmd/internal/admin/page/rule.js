// The card of one rule, and its row in the table that says the same.

import { Chart } from "./chart.js";
import { TableMeter } from "./table.js";
import { TokenLine } from "./tokens.js";
import { count, keyName, make, plainly, put, rate } from "./text.js";

const modes = {
  local: "kept on this machine",
  strict: "kept in the store, which is asked for every request",
  leased: "kept in the store, which lends this machine tokens in advance",
};

// whose says what has a limit of its own.
function whose(rule) {
  const keys = (rule.parts ?? []).map(keyName).join(" and ") || keyName(rule.by);
  return rule.by === "global" ? "one limit for all together" : `a limit for each ${keys}`;
}

export class RuleCard {
  constructor(rule, points) {
    this.chart = new Chart(points);
    this.tag = make("span", { class: "tag", title: "It counts what it would refuse, and lets it pass" }, "shadow: refuses nothing");
    this.mode = make("span", { class: "tag mode" });
    this.policy = make("p");
    this.meaning = make("p", { class: "meaning" });
    this.leases = make("p", { class: "table" });
    this.table = new TableMeter();
    this.tokens = new TokenLine();
    this.element = make("article", { class: "rule", "aria-label": "Rule " + rule.name },
      make("header", {}, make("h3", {}, rule.name), this.tag, this.mode, this.policy, this.meaning), this.chart.element, this.tokens.element, this.table.element, this.leases);
    this.line = null; // where there are many rules
    this.cells = Array.from({ length: 8 }, () => make("td"));
    this.row = make("tr", {}, make("th", { scope: "row" }, rule.name), ...this.cells);
  }

  // show takes the numbers of a second.
  show(rule, now) {
    this.rule = rule;
    this.refusing = rule.shadow ? "shadow_refused" : "refused";
    this.tokens.note(rule.tokens, now);
  }

  // draw shows them in the card, or in a line with the card below it if that is open.
  draw() {
    const rule = this.rule;
    if (this.line) {
      this.line.draw();
      if (!this.line.isOpen) return;
    }
    this.tokens.show(rule.tokens);
    this.tag.hidden = !rule.shadow;
    put(this.policy, plainly(rule.policy));
    put(this.meaning, rule.for ? `for ${rule.for}, ${whose(rule)}` : "");
    put(this.mode, rule.mode);
    this.mode.title = modes[rule.mode];
    this.table.show(rule.table);
    this.#showLeases(rule.leases, rule.mode);
    this.chart.draw(rule.shadow);
  }

  // drawRow shows the numbers in the table.
  drawRow() {
    const rule = this.rule;
    ["allowed", this.refusing].forEach((o, i) => {
      put(this.cells[3 * i], rate(rule.rate[o]));
      put(this.cells[3 * i + 1], rate(this.chart.mean(o, 60)));
      put(this.cells[3 * i + 2], rate(this.chart.peak(o)));
      put(this.cells[6 + i], count(rule.total[o]));
    });
  }

  #showLeases(l, mode) {
    this.leases.hidden = !l;
    if (!l) return;
    const held = mode === "leased" ? `${count(l.keys)} ${l.keys === 1 ? "lease" : "leases"}, ${count(l.held)} tokens in hand, ${count(l.debt)} owed` : "the store is asked for every request";
    put(this.leases, held + (l.fallbacks ? `; ${count(l.fallbacks)} decided without the store (${l.on_loss})` : "") + (l.differs ? `; another machine has ${l.differs}` : ""));
    this.leases.classList.toggle("bad", l.fallbacks > 0 || Boolean(l.differs));
  }

  // What rules are sorted by.
  get order() {
    const r = this.rule;
    return {
      refused: this.chart.mean(this.refusing, 60),
      requests: this.chart.mean("allowed", 60) + this.chart.mean(this.refusing, 60),
      full: r.table ? r.table.keys / r.table.slots : 0,
    };
  }
}
