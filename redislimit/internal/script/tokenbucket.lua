-- A bucket is "level:time": what is owed, in units of 1/den of a token, at that time. A microsecond
-- pays num units back. An empty level is no key at all. Two limits of debt are remembered beyond a full one: what the
-- shares of all nodes admit while a store is away, and what came back meanwhile, are one each.
local num, den, limit = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local full = limit * den
local held = strings()

local function decide(i, key)
  local need, want, returned, debt = ask(i, 3)
  local level, back = 0, false
  if held[key] then
    local owed, at = string.match(held[key], '^(%d+):(%d+)$')
    if owed then
      level, at = math.min(tonumber(owed), 3 * full), tonumber(at)
      back = at > now -- the clock went back: go on from here
      if not back then
        -- A product that is rounded is above 2^53, and so above any level.
        level = math.max(0, level - (now - at) * num)
      end
    end
  end

  local before = level
  level = math.max(0, level - returned * den)
  level = math.min(3 * full, level + debt * den)
  local room = math.floor(math.max(0, full - level) / den)
  local granted, retry = grant(need, want, room), 0
  if need > limit then
    retry = -1
  elseif room < need then
    retry = math.ceil((level + need * den - full) / num)
  end
  level = level + granted * den
  local reset = math.ceil(level / num)

  if level ~= before or back then
    if level > 0 then
      held[key] = string.format('%.0f:%.0f', level, now)
      redis.call('SET', key, held[key], 'PX', lifetime(reset))
    elseif held[key] then
      held[key] = false
      redis.call('DEL', key)
    end
  end
  answer(granted, room - granted, retry, reset, 0)
end

return each(decide)
