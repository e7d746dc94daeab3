// How full a table is, and what it could not keep.

import { bytes, count, make, put } from "./text.js";
import { word } from "./words.js";

// room is for how many keys a table is made: one that is fuller may have to forget some.
export const room = (t) => Math.floor(0.6 * t.slots);

export class TableMeter {
  constructor(name) {
    this.bar = make("i");
    this.meter = make("div", { class: "meter", role: "meter", "aria-label": "Room for keys that is in use", "aria-valuemin": 0, "aria-valuemax": 100 }, this.bar);
    this.keys = make("span");
    this.lost = make("span");
    this.element = make("div", { class: "of-keys" }, ...(name ? [make("b", {}, name)] : []), this.meter, make("div", { class: "table" }, this.keys, this.lost));
  }

  show(t) {
    this.element.hidden = !t;
    if (!t) return;
    const full = (100 * t.keys) / room(t);
    this.bar.style.width = Math.min(full, 100) + "%";
    this.meter.classList.toggle("over", full > 100);
    this.meter.setAttribute("aria-valuenow", Math.min(full, 100).toFixed(1));
    const keys = `${count(t.keys)} ${t.keys === 1 ? "key" : "keys"} in use, room for ${count(room(t))}, ${bytes(t.bytes)}`;
    this.meter.setAttribute("aria-valuetext", keys);
    put(this.keys, keys);
    const lost = [];
    if (t.file_lost) lost.push("its file was removed or replaced: who starts now counts in another one");
    if (t.evictions) lost.push(`${count(t.evictions)} keys forgotten too early: raise ${word.room}`);
    if (t.no_room_refusals) lost.push(`${count(t.no_room_refusals)} refused for want of room`);
    if (t.unrecorded_requests) lost.push(`${count(t.unrecorded_requests)} let pass uncounted`);
    put(this.lost, lost.join(", "));
    this.lost.classList.toggle("bad", lost.length > 0);
  }
}
