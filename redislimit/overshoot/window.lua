-- KEYS[1]: the count of one window; ARGV[1]: how many to add. Returns the count after it.
local count = redis.call('INCRBY', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[1], 10000)
return count
