-- A bucket is "level:time:num/den": what is owed, in units of 1/den of a token, at that time. A microsecond pays num units
-- back. Numbers that are not those of this call are of a limit before or after a change: they pay back until now, and then
-- the tokens that are owed stay, in other units. Of buckets for quotas, whose limit is 0, they are those of another quota:
-- what is owed stays in its units, and pays back by them, until something is taken or given back, or a quota of a faster
-- rate is asked for. An empty level is no key at all. At least two limits of debt are remembered beyond a full one: what
-- the shares of all nodes admit while a store is away, and what came back meanwhile, are one each.
local read, numbers = 'GET', 6
local num, den, limit = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local by, most = ARGV[4] .. '/' .. ARGV[5], num * 1e15 -- which comes back in 31 years

-- repaid returns a level of other numbers, which was owed so long ago, and the numbers.
local function repaid(level, past, other)
  local n, d = string.match(other, '^(%d+)/(%d+)$')
  if not n then
    return 0, 1, 1
  end
  n, d = tonumber(n), tonumber(d)
  return math.max(0, level - math.max(0, past) * n), n, d
end

-- Each key:
local den, into = units or den, den
local full = limit * den
local level, back = 0, false
local by, left, n, d = by, nil, 0, 0 -- left of another quota, and its numbers
if ARGV[6] == '0' then
  local low = den % 1e7
  by, into = format('%s/%d%07d', ARGV[4], (den - low) / 1e7, low), den
end
if value then
  local owed, at, other = string.match(value, '^(%d+):(%d+):(.+)$')
  if owed then
    level, at = tonumber(owed), tonumber(at)
    if other ~= by then
      level, n, d = repaid(level, now - at, other)
      if ARGV[6] == '0' and at <= now and (d < den or want == 0) then
        left = level
      end
      level, at, back = math.ceil(level / d * into), now, true
    end
    if level > most then
      level = most
    end
    if at > now then
      back = true -- the clock went back: go on from here
    else
      -- A product that is rounded is above 2^53, and so above any level.
      level = level - (now - at) * num
      if level < 0 then
        level = 0
      end
    end
  end
end

local before = level
if returned > 0 or debt > 0 then
  local less = returned * den
  if of > 1 and left then -- it may have come back at the rate of another quota
    less = 0
  elseif of > 1 then -- what was owed when it was taken has come back by then
    less = math.min(less, math.max(0, of - now) * num)
  end
  level = math.max(0, level - less)
  local fits = (times * full - level) / den -- whole tokens
  level = level + math.max(0, math.min(debt, fits - fits % 1)) * den
end
if level < full then
  room = (full - level) / den
  room = room - room % 1
end
granted = grant(need, want, room)
if granted > 0 or level ~= before then
  left = nil
end
if need > limit then
  retry = -1
elseif room < need and left and d < den then
  retry = (left - (limit - need) * d) / n
  retry = retry + -retry % 1
elseif room < need then
  retry = (level + need * den - full) / num
  retry = retry + -retry % 1
end
room = room - granted
level = level + granted * den
reset = level / num
if left then
  back = false
end
if left and (d < den or room >= need) then
  reset = left / n
end
reset = reset + -reset % 1
if granted > 0 and of > 0 then
  window = now + reset
end

if level > 0 and (level ~= before or back) then
  local low = level % 1e7
  changed, life = format('%d%07d:%d%06d:%s', (level - low) / 1e7, low, clock[1], clock[2], by), reset
elseif level ~= before or back then
  changed = ''
end
