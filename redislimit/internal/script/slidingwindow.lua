-- A counter is "index:current:previous": the window of the clock that was counted last, what was
-- taken in it, and in the one before. One key holds both, so they change and expire together and
-- need no common hash tag. What was taken beyond the widest limit, as debt, counts as taken in the windows after: at
-- least two limits of it are remembered, as of a bucket.
local read, numbers = 'GET', 5
local limit, length = tonumber(ARGV[4]), tonumber(ARGV[5])
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
if value then
  local s, c, p = string.match(value, '^(%d+):(%d+):(%d+)$')
  if s then
    s, c, p = tonumber(s), math.min(tonumber(c), times * widest), math.min(tonumber(p), widest)
    if s > present + 1 then
      s, back = present + 1, true
    end
    if s >= present then -- the next one, if the clock went back over its start: it is at its start
      index, current, previous = s, c, p
    else
      local left = c - (present - s - 1) * widest -- of it at the end of the window before
      previous, current = math.max(0, math.min(left, widest)), math.max(0, left - widest)
    end
  end
end

local current0, previous0 = current, previous
if returned > 0 and (of == index or of == 1) then -- 1: of any
  local here = math.min(returned, current)
  current, previous = current - here, math.max(0, previous - (returned - here))
elseif returned > 0 and of == index - 1 then
  previous = math.max(0, previous - returned)
end
if debt > 0 then
  current = math.max(current, math.min(times * limit, current + debt))
end
local finish = (index + 1) * length
local counted = current
if previous > 0 then
  counted = current + divide(previous, math.min(length, finish - now), length)
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
    local more = (current + need - limit) / widest
    more = math.max(1, more + -more % 1) -- windows that have to end
    spare = limit - need - math.max(0, current - more * widest)
    retry = finish + more * length - largest(spare, math.min(widest, current - (more - 1) * widest)) - now
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
    local low, more = index % 1e7, current / widest
    changed = format('%d%07d:%d:%d', (index - low) / 1e7, low, current, previous)
    life = finish + math.max(1, more + -more % 1) * length - now
  end
end
