package rulefile

// checkSpread refuses keys that the rule cannot have if its bucket is spread over all processors. Package spec checks
// the numbers.
func (t *ruleText) checkSpread(d *decoder) {
	if len(t.Key) != 1 || len(t.Key[0]) != 1 || t.Key[0][0].Kind != SourceGlobal {
		d.Fail(t.nodes["spread"], "spread: it needs a single bucket, and the key is %s: write key: global, or leave spread out", t.Key)
	}
	for _, key := range []string{"max_keys", "overflow"} {
		if n := t.nodes[key]; n != nil {
			d.Fail(n, "%s: the rule has spread: true and therefore no table: leave one of the two out", key)
		}
	}
}
