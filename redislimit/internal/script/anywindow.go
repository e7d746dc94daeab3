package script

// AnyWindow, as the Window of an Ask, gives Returned tokens back to all windows that still count. No real window starts
// in the first microsecond of 1970.
const AnyWindow = 1
