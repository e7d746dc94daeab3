// Numbers and elements, for the other files.

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 });

export const count = (n) => (n < 1e6 ? whole.format(n) : short.format(n));
export const percent = (part, all) => {
  const p = all > 0 ? (100 * part) / all : 0;
  return (p === 0 || p >= 10 ? p.toFixed(0) : p < 0.1 ? "<0.1" : p.toFixed(1)) + " %";
};

export function rate(n) {
  if (n >= 10000) return short.format(n);
  return n >= 10 || Number.isInteger(n) ? whole.format(Math.round(n)) : n.toFixed(1);
}

// duration writes milliseconds in a unit of people, such as "12 ms" and "2.5 s".
export const duration = (ms) => (ms < 999.5 ? milliseconds(ms) + " ms" : (ms / 1000).toFixed(ms < 9950 ? 1 : 0) + " s");

const milliseconds = (n) => (n >= 10 ? whole.format(Math.round(n)) : n.toFixed(n < 1 ? 2 : 1));

export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (; n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return (n < 10 && i > 0 ? n.toFixed(1) : n.toFixed(0)) + " " + units[i];
}

// plainly writes a limit without the zeros of its times: 10/1m0s is 10/1m.
export const plainly = (policy) => policy.replace(/(\d)h0m0s\b/g, "$1h").replace(/(\d)m0s\b/g, "$1m");

const kinds = { header: "header", cookie: "cookie", query: "parameter", entry: "" };
const sources = { ip: "client address", global: "everybody", method: "method", path: "path", host: "host" };

// keyName writes a part of a rule's key as people say it: "header:X-API-Key or ip" is "X-API-Key header or client
// address".
export const keyName = (part) =>
  part.split(" or ").map((s) => sources[s] ?? s.replace(/^(header|cookie|query|entry)[: ](.*)$/, (_, kind, name) => `${name} ${kinds[kind]}`.trim())).join(" or ");

// make returns an element. Texts are only ever set as text, never read as HTML.
export function make(name, attributes = {}, ...children) {
  const e = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children);
  return e;
}

// put changes a text only if it is another, which leaves selections and screen readers in peace.
export function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
