// The line of one rule where there are many: a small chart and numbers, and the card of the rule below it if it is open.
// Only lines that are on the screen draw.

import { count, make, percent, plainly, put, rate } from "./text.js";
import { room } from "./table.js";

const width = 120, height = 24, marks = 60;

const seen = new IntersectionObserver((entries) => {
  for (const e of entries) {
    e.target.line.visible = e.isIntersecting;
    if (e.isIntersecting) e.target.line.draw();
  }
}, { rootMargin: "100px" });

// thin returns so many values, each the highest of a stretch of the last points.
function thin(line, points) {
  const step = points / marks, from = points - line.length, out = [];
  for (let i = 0; i < marks; i++) {
    let most = -1;
    for (let at = Math.floor(i * step); at < Math.floor((i + 1) * step); at++) if (at >= from) most = Math.max(most, line[at - from]);
    out.push(most);
  }
  return out;
}

// path draws values from left to right; what is below 0 is not known.
function path(values, top) {
  let d = "", pen = "M";
  values.forEach((v, i) => {
    if (v < 0) return;
    d += `${pen}${((i * width) / (marks - 1)).toFixed(1)} ${(height - (height * v) / top).toFixed(1)}`;
    pen = "L";
  });
  return d;
}

export class Line {
  constructor(card) {
    this.card = card;
    this.name = make("b");
    this.policy = make("small");
    this.button = make("button", { type: "button", class: "open", "aria-expanded": "false" }, this.name, this.policy);
    this.button.addEventListener("click", () => this.toggle());
    const svg = (name, attributes) => {
      const e = document.createElementNS("http://www.w3.org/2000/svg", name);
      for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
      return e;
    };
    this.paths = { allowed: svg("path", { class: "allowed" }), refused: svg("path", { class: "refused" }) };
    const spark = svg("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" });
    spark.append(...Object.values(this.paths));
    this.cells = ["allowed", "refused", "share", "keys"].map((name) => make("span", { class: name }));
    this.element = make("div", { class: "line" }, make("div", { class: "row" }, this.button, spark, ...this.cells));
    this.element.line = this;
    seen.observe(this.element);
  }

  // remove takes the line out of the page, and out of the sight of what draws.
  remove() {
    seen.unobserve(this.element);
    this.element.remove();
  }

  get isOpen() {
    return this.button.getAttribute("aria-expanded") === "true";
  }

  toggle() {
    this.button.setAttribute("aria-expanded", String(!this.isOpen));
    if (this.isOpen) {
      this.element.append(this.card.element);
      this.card.draw();
    } else this.card.element.remove();
  }

  draw() {
    const { card, visible } = this;
    if (!visible || !card.rule) return;
    const { rule, chart, refusing } = card;
    put(this.name, rule.name);
    this.name.title = rule.name;
    put(this.policy, plainly(rule.policy) + (rule.shadow ? ", shadow" : ""));
    const now = [rule.rate.allowed, rule.rate[refusing]];
    put(this.cells[0], `${rate(now[0])}/s`);
    put(this.cells[1], now[1] ? `${rate(now[1])}/s` : "–");
    put(this.cells[2], now[1] ? percent(now[1], now[0] + now[1]) : "");
    put(this.cells[3], rule.table ? `${count(rule.table.keys)} ${rule.table.keys === 1 ? "key" : "keys"}` : "");
    this.cells[3].classList.toggle("bad", Boolean(rule.table) && rule.table.keys > room(rule.table));
    const { points, lines } = chart.drawn, top = Math.max(...lines.allowed, ...lines[refusing], 0);
    for (const [name, line] of [["allowed", lines.allowed], ["refused", lines[refusing]]]) {
      const d = top > 0 && (name === "allowed" || line.some((v) => v > 0)) ? path(thin(line, points), top) : "";
      if (this.paths[name].getAttribute("d") !== d) this.paths[name].setAttribute("d", d);
    }
  }
}
