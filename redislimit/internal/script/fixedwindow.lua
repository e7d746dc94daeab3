-- A window is "start:count", or "start:count:wide" if more is charged to it than it can hold: what is beyond wide is debt,
-- and counts in the windows after. At least two limits of it are remembered, as of a bucket. A count that is beyond the
-- widest limit and no debt was taken before a change of the limit, and goes with its window.
local read, numbers, most = 'GET', 6, 4294967296
local limit, length, aligned = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] == '1'
local first = now -- where a window that begins now has its start
local latest = now -- no window that has begun can have a later start
if aligned then
  first = now - now % length
  latest = first + length -- the next one, if the clock went back over its start
end

-- Each key:
local start, count, over, back = false, 0, 0, false
local wide = widest -- what the window holds
if value then
  local s, c, w = string.match(value, '^(%d+):(%d+):?(%d*)$')
  if s then
    s, c = tonumber(s), math.min(tonumber(c), times * most)
    local holds = math.max(widest, tonumber(w) or c)
    if s > latest then
      s, back = latest, true
    end
    local ended = (now - s) / length
    ended = ended - ended % 1 -- windows since, of which each paid a limit
    if ended < 1 then
      start, count, wide = s, c, holds
    elseif c > holds + (ended - 1) * widest then
      count, over = c - holds - (ended - 1) * widest, s + (ended + 1) * length
    end
  end
end

COUNT
local begins = not start and (granted > 0 or debt > 0)
if begins then
  start = first
end
if start then
  reset = start + length - now
elseif over > 0 then
  reset = over - now
end
if need > limit then
  retry = -1
elseif room < need then
  local more = math.max(0, count - wide + need - limit) / widest -- windows that have to end after this one
  retry = reset + (more + -more % 1) * length
end
room = room - granted
window = start or 0

if start and (count ~= before or back or begins) then
  life = reset
  local low, few = start % 1e7, count % 1e7
  changed = format('%d%07d:%d%07d', (start - low) / 1e7, low, (count - few) / 1e7, few)
  if count > wide then
    local more = (count - wide) / widest
    life = reset + (more + -more % 1) * length
    changed = format('%s:%.0f', changed, wide)
  end
end
