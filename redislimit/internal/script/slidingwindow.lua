-- A counter is "index:current:previous": the window of the clock that was counted last, what was
-- taken in it, and in the one before. One key holds both, so they change and expire together and
-- need no common hash tag. If more is charged to a window than it can hold, that is there, too, as ":wide": what is beyond
-- it is debt, and counts as taken in the windows after. At least two limits of it are remembered, as of a bucket. A count
-- that is beyond the widest limit and no debt was taken before a change of the limit.
local read, numbers, most = 'GET', 5, 16777215
local limit, length = tonumber(ARGV[4]), tonumber(ARGV[5])
local min, max = math.min, math.max
local present = math.floor(now / length)

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
  local quotient, rest = divide(n + 1, length, count)
  if rest > 0 then
    return quotient
  end
  return quotient - 1
end

-- Each key:
local index, current, previous, back = present, 0, 0, false
local wide = widest -- what the window holds
if value then
  local s, c, p, w = string.match(value, '^(%d+):(%d+):(%d+):?(%d*)$')
  if s then
    s, c, p = tonumber(s), min(tonumber(c), times * most), min(tonumber(p), most)
    local holds = min(most, max(widest, tonumber(w) or c))
    if s > present + 1 then
      s, back = present + 1, true
    end
    if s >= present then -- the next one, if the clock went back over its start: it is at its start
      index, current, previous, wide = s, c, p, holds
    elseif s == present - 1 then
      previous = min(c, holds)
      current = c - previous
    else
      local left = c - holds - (present - s - 2) * widest -- of it at the end of the window before
      previous, current = max(0, min(left, widest)), max(0, left - widest)
    end
  end
end

local current0, previous0 = current, previous
if returned > 0 and (of == index or of == 1) then -- 1: of any
  local here = min(returned, current)
  current, previous = current - here, max(0, previous - (returned - here))
elseif returned > 0 and of == index - 1 then
  previous = max(0, previous - returned)
end
if debt > 0 then
  current = max(current, min(times * limit, current + debt))
end
local finish = (index + 1) * length
local counted = current
if previous > 0 then
  counted = current + divide(previous, min(length, finish - now), length)
end
if counted < limit then
  room = limit - counted
end
granted = grant(need, want, room)
if need > limit then
  retry = -1
elseif room < need then
  local spare = limit - need - current
  if spare >= 0 then
    retry = finish - largest(spare, previous) - now
  else
    local more = max(0, current - wide + need - limit) / widest
    more = more + -more % 1 -- windows that have to end after this one
    local before = min(current, wide) -- in the last of them
    if more > 0 then
      before = min(widest, current - wide - (more - 1) * widest)
    end
    spare = limit - need - max(0, current - wide - more * widest)
    retry = finish + (more + 1) * length - largest(spare, before) - now
  end
end
room = room - granted
current = current + granted
if counted + granted > 0 then
  reset = finish - now
end
window = index

if current ~= current0 or previous ~= previous0 or back then
  changed = ''
  if current + previous > 0 then
    local low, more = index % 1e7, max(0, current - wide) / widest
    changed = format('%d%07d:%d:%d', (index - low) / 1e7, low, current, previous)
    life = finish + (more + -more % 1 + 1) * length - now
    if more > 0 then
      changed = format('%s:%d', changed, wide)
    end
  end
end
