package script

// AnyWindow is a value for the Window of an Ask. It gives Returned tokens back to all windows that still count. It is
// for callers that did not keep the Window of the Answer. No real window starts at this value, the first microsecond of
// 1970.
const AnyWindow = 1
