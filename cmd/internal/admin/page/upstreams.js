// The servers that requests are passed to.

import { count, duration, make, put, rate } from "./text.js";

const box = document.getElementById("upstreams-box"), body = document.getElementById("upstreams"), chip = document.getElementById("upstreams-chip");
const rows = new Map();

function makeRow(name) {
  const row = { name, state: make("span", { class: "chip" }), cells: Array.from({ length: 4 }, () => make("td")) };
  row.element = make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, row.state), ...row.cells);
  return row;
}

// showUpstreams shows the servers as they were at a time in milliseconds: rates are of the time since the last.
export function showUpstreams(all, now) {
  box.hidden = chip.hidden = all.length === 0;
  const down = all.filter((u) => !u.up).length;
  chip.className = "chip " + (down ? "bad" : "");
  put(chip, down ? `${count(down)} of ${count(all.length)} ${all.length === 1 ? "server" : "servers"} down` : all.length === 1 ? "server up" : `${count(all.length)} servers up`);
  for (const u of all) {
    if (!rows.has(u.name)) rows.set(u.name, makeRow(u.name));
    const row = rows.get(u.name), before = row.last ?? u, seconds = (now - (before.now ?? now)) / 1000;
    const answered = u.answered - before.answered, failed = u.failed - before.failed;
    row.state.className = "chip " + (u.up ? "" : "bad");
    put(row.state, u.up ? "up" : "down");
    [count(u.in_flight), `${rate(seconds > 0 ? answered / seconds : 0)}/s`,
      answered > 0 ? duration((1000 * (u.seconds - before.seconds)) / answered) : "–",
      `${rate(seconds > 0 ? failed / seconds : 0)}/s, ${count(u.failed)} in all`].forEach((text, i) => put(row.cells[i], text));
    row.cells[3].classList.toggle("bad", failed > 0);
    if (!row.last || now > row.last.now) row.last = { ...u, now };
    if (row.element.parentNode !== body) body.append(row.element);
  }
  for (const [name, row] of rows) {
    if (all.some((u) => u.name === name)) continue;
    row.element.remove();
    rows.delete(name);
  }
}
