-- KEYS[1]: a hash of level and the time it is of, in microseconds; ARGV: rate per second, count to add.
-- Returns the level after it, a string.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local held = redis.call('HMGET', KEYS[1], 'level', 'at')
local level, at = tonumber(held[1] or '0'), tonumber(held[2] or now)
level = math.max(0, level - (now - at) * tonumber(ARGV[1]) / 1000000) + tonumber(ARGV[2])
local text = string.format('%.6f', level)
redis.call('HSET', KEYS[1], 'level', text, 'at', string.format('%.0f', now))
redis.call('PEXPIRE', KEYS[1], 60000)
return text
