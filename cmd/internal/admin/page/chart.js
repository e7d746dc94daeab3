// The chart of one rule: requests per second over a span of time, a line for each outcome that has its name and number
// at its end.

import { make, put, rate } from "./text.js";

const outcomes = ["allowed", "refused", "shadow_refused"];
const names = { allowed: "allowed", refused: "refused", shadow_refused: "would refuse" };
const width = 300, height = 100;

function svg(name, attributes) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  return e;
}

// ceiling returns the least round number that is not below n.
function ceiling(n) {
  const power = 10 ** Math.floor(Math.log10(Math.max(n, 0.01)));
  return [1, 2, 3, 4, 6, 8, 10].map((m) => m * power).find((c) => c >= n);
}

export class Chart {
  constructor(points) {
    this.points = points;
    this.lines = Object.fromEntries(outcomes.map((o) => [o, []])); // of the last five minutes
    this.shown = null; // the lines of a longer span, if that is what is drawn
    this.svg = svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img" });
    for (const y of [0, height / 2, height]) this.svg.append(svg("line", { class: "grid", x1: 0, x2: width, y1: y, y2: y }));
    this.area = svg("path", { class: "area" });
    this.svg.append(this.area);
    this.paths = {};
    this.labels = {};
    for (const o of outcomes) {
      this.svg.append((this.paths[o] = svg("path", { class: o })));
      this.labels[o] = make("span", { class: "label " + o, "aria-hidden": "true" }, make("b"), names[o]);
    }
    this.most = make("span", { class: "most", "aria-hidden": "true" });
    this.quiet = make("span", { class: "quiet" });
    this.from = make("span", { class: "from", "aria-hidden": "true" });
    this.element = make("div", { class: "chart" }, this.svg, this.most, this.quiet,
      this.from,
      make("span", { class: "to", "aria-hidden": "true" }, "now"),
      ...Object.values(this.labels));
  }

  // load replaces what is drawn.
  load(lines) {
    for (const o of outcomes) this.lines[o] = lines?.[o] ?? [];
  }

  // showSpan draws the lines of a span, or of the last five minutes if there are none.
  showSpan(span, past, lines) {
    this.span = span;
    this.shown = past && { points: past.points, lines: Object.fromEntries(outcomes.map((o) => [o, lines?.[o] ?? []])) };
    put(this.from, span.ago);
    put(this.quiet, `no requests in the last ${span.words}`);
  }

  // push moves the lines by a second.
  push(rates) {
    for (const o of outcomes) {
      this.lines[o].push(rates[o]);
      if (this.lines[o].length > this.points) this.lines[o].shift();
    }
  }

  // mean and most are over the last so many seconds.
  mean(outcome, seconds) {
    const last = this.lines[outcome].slice(-seconds);
    return last.length ? last.reduce((a, b) => a + b, 0) / last.length : 0;
  }

  peak(outcome) {
    return Math.max(0, ...this.lines[outcome]);
  }

  // drawn is what is drawn.
  get drawn() {
    return this.shown ?? this;
  }

  draw(shadow) {
    const { points, lines } = this.drawn;
    const most = (o) => Math.max(0, ...lines[o]);
    const peak = Math.max(...outcomes.map(most));
    const top = ceiling(peak);
    const y = (value) => height - (height * value) / top;
    const x = (line, i) => width - ((line.length - 1 - i) * width) / (points - 1);
    const path = (line) => line.map((v, i) => `${i ? "L" : "M"}${x(line, i).toFixed(2)} ${y(v).toFixed(2)}`).join("");
    for (const o of outcomes) {
      const used = o === "allowed" || most(o) > 0;
      this.paths[o].setAttribute("d", used && peak > 0 ? path(lines[o]) : "");
    }
    const allowed = lines.allowed;
    this.area.setAttribute("d", peak > 0 && allowed.length > 1 ? `${path(allowed)}L${width} ${height}L${x(allowed, 0).toFixed(2)} ${height}Z` : "");
    this.quiet.hidden = peak > 0;
    this.most.textContent = `${rate(top)}/s`;
    this.most.hidden = peak === 0;
    this.#label(shadow ? "shadow_refused" : "refused", shadow ? "refused" : "shadow_refused", (v) => Math.max(0, y(v) / height));
    const text = (o) => `${names[o]} ${rate(this.lines[o].at(-1) ?? 0)} per second, at most ${rate(most(o))}`;
    this.svg.setAttribute("aria-label", `Last ${this.span.words}: ${text("allowed")}; ${text(shadow ? "shadow_refused" : "refused")}.`);
  }

  // #label puts the numbers beside the ends of their lines, apart from each other and inside.
  #label(second, unused, place) {
    this.labels[unused].hidden = true;
    const tall = this.element.clientHeight || 136;
    const half = 18 / tall; // half of a label
    const ends = ["allowed", second].map((o) => ({ o, value: this.lines[o].at(-1) ?? 0 }));
    for (const e of ends) e.at = Math.min(1 - half, Math.max(half, place(e.value)));
    ends.sort((a, b) => a.at - b.at);
    const lack = 2 * half - (ends[1].at - ends[0].at);
    if (lack > 0) {
      ends[0].at = Math.min(Math.max(half, ends[0].at - lack / 2), 1 - 3 * half);
      ends[1].at = ends[0].at + 2 * half;
    }
    for (const e of ends) {
      const label = this.labels[e.o];
      label.hidden = false;
      label.style.top = (100 * e.at).toFixed(1) + "%";
      label.firstChild.textContent = rate(e.value) + "/s";
    }
  }
}
