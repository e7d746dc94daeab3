-- A window is "start:count". What was taken beyond the limit, as debt, counts in the window after.
local limit, window, aligned = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1'
local first = now -- where a window that begins now has its start
local latest = now -- no window that has begun can have a later start
if aligned then
  first = now - now % window
  latest = first + window -- the next one, if the clock went back over its start
end
local held = strings()

local function decide(i, key)
  local need, want, returned, debt, of = ask(i, 3)
  local start, count, over, back = false, 0, 0, false
  if held[key] then
    local s, c = string.match(held[key], '^(%d+):(%d+)$')
    if s then
      s, c = tonumber(s), math.min(tonumber(c), 2 * limit)
      if s > latest then
        s, back = latest, true
      end
      if now < s + window then
        start, count = s, c
      elseif now < s + 2 * window and c > limit then
        count, over = c - limit, s + 2 * window
      end
    end
  end

  local before = count
  if start and (start == of or of == 1) then -- 1: of any
    count = math.max(0, count - returned)
  end
  count = math.min(2 * limit, count + debt)
  local room = math.max(0, limit - count)
  local granted, retry = grant(need, want, room), 0
  count = count + granted
  local begins = not start and (granted > 0 or debt > 0)
  if begins then
    start = first
  end
  local reset = 0
  if start then
    reset = start + window - now
  elseif over > 0 then
    reset = over - now
  end
  if need > limit then
    retry = -1
  elseif room < need then
    retry = reset
    if start and count > limit and need > 2 * limit - count then
      retry = reset + window
    end
  end

  if count ~= before or back or begins then
    local left = reset
    if count > limit then
      left = reset + window
    end
    if start then
      held[key] = string.format('%.0f:%.0f', start, count)
      redis.call('SET', key, held[key], 'PX', lifetime(left))
    end
  end
  answer(granted, room - granted, retry, reset, start or 0)
end

return each(decide)
