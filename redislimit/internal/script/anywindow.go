package script

// AnyWindow is a value for the Window of an Ask. With it, Returned tokens go back to all windows that still count. It
// is for callers that did not keep the Window of the Answer. The value stands for the first microsecond of 1970, and no
// real window starts at that time.
const AnyWindow = 1
