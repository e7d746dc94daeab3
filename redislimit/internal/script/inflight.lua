-- Places in flight are a sorted set: a member for each, scored with the time until which it is kept unless it is renewed.
-- Those of one request are named by a number that no other request of the key has, which is its window: the time it took
-- them, or the next free one.
local read, numbers = 'ZCARD', 5
local limit, length = tonumber(ARGV[4]), tonumber(ARGV[5])

-- name returns the i-th place of a request.
local function name(id, i)
  local low = id % 1e7
  local first = format('%d%07d', (id - low) / 1e7, low)
  if i > 1 then
    return first .. ':' .. i
  end
  return first
end

-- all calls a command for n places of a request, some hundred at a time, and returns the sum of its replies.
local function all(command, key, id, n, score)
  local sum, list = 0, {}
  for i = 1, n do
    if score then
      list[#list + 1] = score
    end
    list[#list + 1] = name(id, i)
    if #list >= 512 or i == n then
      sum, list = sum + call(command, key, unpack(list)), {}
    end
  end
  return sum
end

-- add adds n places of a request, and returns its number.
local function add(key, n, kept)
  local id = now
  while call('ZADD', key, 'NX', kept, name(id, 1)) == 0 do
    id = id + 1
  end
  if n > 1 then
    all('ZADD', key, id, n, kept)
  end
  return id
end

-- Each key:
local count, id = value, 1
if count > 0 then
  count = count - call('ZREMRANGEBYSCORE', key, '-inf', name(now, 1))
end
if returned > 0 and count > 0 then
  if of == 1 then -- of whatever request: those that would be forgotten first
    count = count - #call('ZPOPMIN', key, returned) / 2
  else
    count = count - all('ZREM', key, of, returned)
  end
end
local kept = name(now + length, 1)
local late = {}
if count > 0 and debt + want > 0 then -- those that a clock which went back would keep for too long, some in each call
  late = call('ZRANGEBYSCORE', key, '(' .. kept, '+inf', 'LIMIT', 0, 16)
  for i = #late, 1, -1 do
    late[2 * i - 1], late[2 * i] = kept, late[i]
  end
  if #late > 0 then
    call('ZADD', key, unpack(late))
  end
end
if debt > 0 and of > 1 then -- they are in flight, and stay so
  id = of
  count = count + all('ZADD', key, id, debt, kept)
elseif debt > 0 then
  id = add(key, debt, kept)
  count = count + debt
end
if count < limit then
  room = limit - count
end
granted = grant(need, want, room)
if need > limit then
  retry = -1
elseif room < need then
  local place = count + need - limit - 1 -- that has to be forgotten
  retry = length
  if place < count then
    retry = math.max(1, tonumber(call('ZRANGE', key, place, place, 'WITHSCORES')[2]) - now)
  end
end
room = room - granted
if granted > 0 then
  id = add(key, granted, kept)
  count = count + granted
end
if count > 0 then
  reset = length
end
if granted + debt > 0 and #late < 32 then -- else some of them last longer
  call('PEXPIRE', key, lifetime(length))
end
window, held[key] = id, count
