-- A log has seven bytes for each token, the oldest first: the time it was taken, the most significant byte first. A
-- script looks at some of them and adds others at the end, so that what it does hardly depends on how many there are.
-- Those that have left the window stay in front until they are a quarter of the others.
local read, numbers, most = 'STRLEN', 5, 4096
local limit, length = tonumber(ARGV[4]), tonumber(ARGV[5])
local stamp = '' -- now
for power = 6, 0, -1 do
  stamp = stamp .. string.char(math.floor(now / 256 ^ power) % 256)
end

-- taken returns when the token of that place was taken, from 0.
local function taken(key, place)
  local a, b, c, d, e, f, g = string.byte(call('GETRANGE', key, place * 7, place * 7 + 6), 1, 7)
  return ((((((a * 256 + b) * 256 + c) * 256 + d) * 256 + e) * 256 + f) * 256) + g
end

-- later returns the place of the first of n tokens that was taken later than a time, n if none was, and when it was.
local function later(key, n, time)
  local low, high, at = 0, n, nil
  local middle = 0 -- most often it is the oldest
  while low < high do
    local t = taken(key, middle)
    if t > time then
      high, at = middle, t
    else
      low = middle + 1
    end
    middle = math.floor((low + high) / 2)
  end
  return low, at
end

-- Each key:
local n = value / 7
if n % 1 > 0 or n > (times + 1) * most + 16 then
  call('DEL', key) -- not ours
  n = 0
elseif n > 0 and taken(key, n - 1) > now then
  -- The clock went back: what it says will be taken was taken by now.
  local place, log = later(key, n, now), ''
  if place > 0 then
    log = call('GETRANGE', key, 0, place * 7 - 1)
  end
  call('SET', key, log .. string.rep(stamp, n - place), 'PX', lifetime(length))
end
local gone, oldest = later(key, n, now - length)
local back, last = math.min(returned, n - gone), n -- so many are given back, which are before the last place
if back > 0 and of > 1 then -- of those that were taken then
  last = later(key, n, of)
  back = math.max(0, math.min(back, last - gone))
  if back > 0 and taken(key, last - back) < of then
    back = last - later(key, last, of - 1)
  end
end
local first, count = last - back, n - back - gone
if first == gone and back > 0 and last < n then
  oldest = taken(key, last)
end
local charged = math.max(0, math.min(debt, times * limit - count))
if count + charged < limit then
  room = limit - count - charged
end
granted = grant(need, want, room)
if need > limit then
  retry = -1
elseif room < need then
  local place = gone + count + charged + need - limit - 1 -- the token that has to leave
  retry = length
  if place < gone + count then
    if place >= first then
      place = place + back
    end
    retry = math.max(1, taken(key, place) + length - now)
  end
end
room = room - granted
local added = granted + charged
if count > 0 then
  reset = oldest + length - now
elseif added > 0 then
  reset = length
end
window = 1
if granted > 0 then
  window = now
end

if added > 0 and count > 0 and back == 0 and gone <= 16 + count / 4 then
  held[key] = call('APPEND', key, string.rep(stamp, added))
  call('PEXPIRE', key, lifetime(length))
elseif count + added == 0 and back > 0 then
  call('DEL', key)
  held[key] = 0
elseif added > 0 or back > 0 then
  local log, life = string.rep(stamp, added), length
  if last < n then
    log = call('GETRANGE', key, last * 7, -1) .. log
  end
  if first > gone then
    log = call('GETRANGE', key, gone * 7, first * 7 - 1) .. log
  end
  if added == 0 then
    local newest = n - 1
    if last == n then
      newest = first - 1
    end
    life = taken(key, newest) + length - now
  end
  call('SET', key, log, 'PX', lifetime(life))
  held[key] = #log
end
