// This file lets procid.go declare functions without a body.
