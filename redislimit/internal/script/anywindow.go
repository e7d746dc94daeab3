package script

// AnyWindow as the Window of an Ask gives Returned tokens back to all windows that still count. It is for callers that
// did not keep the Window of the Answer. It is not the start of a real window: it is the first microsecond of 1970.
const AnyWindow = 1
