package script

// AnyWindow as the Window of an Ask gives Returned tokens back to whatever windows still count: for callers
// that did not keep the Window of the Answer. No window begins then: it is the first microsecond of 1970.
const AnyWindow = 1
