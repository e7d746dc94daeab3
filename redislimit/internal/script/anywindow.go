package script

// AnyWindow is a value for the Window of an Ask. With this value, Returned tokens go back to all windows that still
// count. It is for callers that did not store the Window of the Answer. The value stands for the first microsecond of
// 1970. No real window starts at that time.
const AnyWindow = 1
