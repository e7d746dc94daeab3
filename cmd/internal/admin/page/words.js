// The words that depend on the program.

const words = {
  "weir": { failures: "errors of your server", room: "max_keys", hidden: "the rule file says so" },
  "weir-envoy": { failures: "answered with an error", room: "MAX_KEYS", hidden: "DEBUG_KEYS=off says so" },
};

export let word = words.weir;

export function speakAs(program) {
  word = words[program] ?? words.weir;
}
