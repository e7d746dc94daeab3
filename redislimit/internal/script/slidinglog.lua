-- A log is a sorted set with a member for every token, by the time it was taken. Members are
-- numbers of equal width that grow, so tokens of one time stay in their order and none is lost.
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local inside = string.format('(%.0f', now - window) -- what was taken later than this has not left

for _, key in ipairs(KEYS) do
  check(key, redis.pcall('ZCARD', key))
end

-- members adds or scores tokens, not more at once than a call can carry.
local function members(key, names)
  local at = string.format('%.0f', now)
  for from = 1, #names, 1000 do
    local args = {}
    for j = from, math.min(from + 999, #names) do
      args[#args + 1] = at
      args[#args + 1] = names[j]
    end
    redis.call('ZADD', key, unpack(args))
  end
end

-- append adds n tokens that are taken now.
local function append(key, n)
  local newest = redis.call('ZRANGE', key, -1, -1)[1]
  local last, names = tonumber(newest or '0'), {}
  for j = 1, n do
    names[j] = string.format('%016.0f', last + j)
  end
  members(key, names)
end

-- score returns when the token of that place was taken, from 0, the oldest that is still stored.
local function score(key, place)
  local at = string.format('%.0f', place)
  return tonumber(redis.call('ZRANGE', key, at, at, 'WITHSCORES')[2])
end

local function decide(i, key)
  local need, want, returned, debt, of = ask(i, 2)
  local newest = redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')
  local back = false
  if newest[1] and not string.match(newest[1], '^%d+$') then
    redis.call('DEL', key) -- not ours
  elseif newest[1] and tonumber(newest[2]) > now then
    -- The clock went back: what it says will be taken was taken by now.
    local later = redis.call('ZRANGEBYSCORE', key, string.format('(%.0f', now), '+inf')
    members(key, later)
    back = true
  end

  if returned > 0 then
    local until_ = '+inf'
    if of > 1 then
      until_ = string.format('%.0f', of)
    end
    local names = redis.call('ZREVRANGEBYSCORE', key, until_, inside, 'LIMIT', 0, string.format('%.0f', returned))
    for from = 1, #names, 1000 do
      redis.call('ZREM', key, unpack(names, from, math.min(from + 999, #names)))
    end
  end
  local count = redis.call('ZCOUNT', key, inside, '+inf')
  debt = math.min(debt, 2 * limit - count)
  local room = math.max(0, limit - count - debt)
  local granted, retry, reset = grant(need, want, room), 0, 0
  if granted + debt > 0 then
    redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.0f', now - window))
    append(key, granted + debt)
    count = count + granted + debt
  end
  if granted + debt > 0 or back then
    redis.call('PEXPIRE', key, lifetime(window))
  end
  if count > 0 then
    local left = redis.call('ZCARD', key) - count -- stored, but no longer inside
    reset = score(key, left) + window - now
    if need <= limit and room < need then
      retry = score(key, left + count + need - limit - 1) + window - now
    end
  end
  if need > limit then
    retry = -1
  end
  answer(granted, room - granted, retry, reset, now)
end

return each(decide)
