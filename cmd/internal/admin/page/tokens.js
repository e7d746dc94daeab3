// What a rule counts whose cost the answers tell: a line below its chart.

import { count, make, percent, put, rate } from "./text.js";

// ahead writes seconds in the largest unit that fits.
function ahead(s) {
  for (const [unit, seconds] of [["days", 86400], ["h", 3600], ["min", 60]]) if (s >= 2 * seconds) return `${Math.round(s / seconds)} ${unit}`;
  return `${Math.round(s)} s`;
}

export class TokenLine {
  constructor() {
    this.numbers = make("p", { class: "table" });
    this.budget = make("p", { class: "table" });
    this.element = make("div", {}, this.numbers, this.budget);
  }

  // note takes the tokens of a time in milliseconds.
  note(tokens, now) {
    if (!tokens) return;
    if (this.last && now > this.last.now) this.rate = (1000 * (tokens.settled - this.last.settled)) / (now - this.last.now);
    this.last = { now, settled: tokens.settled };
  }

  show(tokens) {
    this.element.hidden = !tokens;
    if (!tokens) return;
    const cost = tokens.most ? `; half cost up to ${percent(tokens.half, 1)} of what is held, 95 % up to ${percent(tokens.most, 1)}` : "";
    const unknown = tokens.unknown ? `; ${count(tokens.unknown)} without usage` : "";
    put(this.numbers, `${rate(this.rate ?? 0)} tokens/s, ${count(tokens.held)} held now${cost}${unknown}`);
    const b = tokens.least;
    const warned = tokens.warned.map((n, i) => (n ? `${[50, 80, 95][i]} % ${count(n)}×` : "")).filter(Boolean).join(", ");
    put(this.budget, (b ? `least left of a key: ${count(b.left)} of ${count(b.limit)}${b.ends ? `, ends in ${ahead(b.ends)} at this pace` : ""}` : "no key in the last minute") + (warned ? `; passed ${warned}` : ""));
    this.budget.classList.toggle("bad", Boolean(b) && b.left * 20 <= b.limit);
  }
}
