-- A counter is "index:current:previous": the window of the clock that was counted last, what was
-- taken in it, and in the one before. One key holds both, so they change and expire together and
-- need no common hash tag.
local limit, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local present = math.floor(now / window)
local held = strings()

-- divide returns a*b/c as a whole number and the rest, for a below 2^28 and b, c up to 365 days. No
-- intermediate number reaches 2^53: a is taken seven bits at a time.
local function divide(a, b, c)
  local quotient, rest = 0, 0
  for _, unit in ipairs({2097152, 16384, 128, 1}) do
    local digit = math.floor(a / unit) % 128
    local sum = rest * 128 + digit * b
    local times = math.floor(sum / c)
    quotient, rest = quotient * 128 + times, sum - times * c
  end
  return quotient, rest
end

-- largest returns how much of a window may be inside for a count of it to be taken for at most n,
-- which is below the count.
local function largest(n, count)
  local quotient, rest = divide(n + 1, window, count)
  if rest > 0 then
    return quotient
  end
  return quotient - 1
end

local function decide(i, key)
  local need, want, returned, debt, of = ask(i, 2)
  local index, current, previous, back = present, 0, 0, false
  if held[key] then
    local s, c, p = string.match(held[key], '^(%d+):(%d+):(%d+)$')
    if s then
      s, c, p = tonumber(s), math.min(tonumber(c), 2 * limit), math.min(tonumber(p), 2 * limit)
      if s > present + 1 then
        s, back = present + 1, true
      end
      if s >= present then -- the next one, if the clock went back over its start: it is at its start
        index, current, previous = s, c, p
      elseif s == present - 1 then
        previous = c
      end
    end
  end

  local current0, previous0 = current, previous
  if of == index or of == 1 then -- 1: of any
    local here = math.min(returned, current)
    current, previous = current - here, math.max(0, previous - (returned - here))
  elseif of == index - 1 then
    previous = math.max(0, previous - returned)
  end
  current = math.min(2 * limit, current + debt)
  local finish = (index + 1) * window
  local inside = math.min(window, finish - now)
  local counted = divide(previous, inside, window) + current
  local room = math.max(0, limit - counted)
  local granted, retry = grant(need, want, room), 0
  if need > limit then
    retry = -1
  elseif room < need then
    local spare = limit - need - current
    if spare >= 0 then
      retry = finish - largest(spare, previous) - now
    else
      retry = finish + window - largest(limit - need, current) - now
    end
  end
  current = current + granted
  local reset = 0
  if counted + granted > 0 then
    reset = finish - now
  end

  if current ~= current0 or previous ~= previous0 or back then
    if current + previous > 0 then
      held[key] = string.format('%.0f:%.0f:%.0f', index, current, previous)
      redis.call('SET', key, held[key], 'PX', lifetime(finish + window - now))
    elseif held[key] then
      held[key] = false
      redis.call('DEL', key)
    end
  end
  answer(granted, room - granted, retry, reset, index)
end

return each(decide)
