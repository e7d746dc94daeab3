-- A calendar window is "number:count": which day, week or month of a time zone it is, and what was taken in it. Nodes say
-- when the periods around the present one begin, which their data of the zone tell, and the server chooses by its own
-- clock. A period that has begun by the data of one node has begun for all of them. What is owed goes with its period.
local read, numbers, most = 'GET', 10, 4294967296
local limit, period = tonumber(ARGV[4]), tonumber(ARGV[5]) -- ARGV[6] to ARGV[10] say when it and the next ones begin
local finish, later = tonumber(ARGV[7]), tonumber(ARGV[8])
if now < tonumber(ARGV[6]) or now >= tonumber(ARGV[9]) then
  return redis.error_reply('WEIRTIME ' .. clock[1])
end
for i = 9, 10 do
  if now >= finish then
    period, finish, later = period + 1, later, tonumber(ARGV[i])
  end
end

-- Each key:
local start, count, back = false, 0, false
if value then
  local s, c = string.match(value, '^(%d+):(%d+)$')
  s = tonumber(s)
  if s and s >= period then
    start, count = math.min(s, period + 1), math.min(tonumber(c), times * most)
    back = start < s -- the clock went back
  end
end

COUNT
if not start and (granted > 0 or debt > 0) then
  start, back = period, true
end
if start and start > period then
  reset = later - now
elseif start then
  reset = finish - now
end
if need > limit then
  retry = -1
elseif room < need then
  retry = reset
end
room = room - granted
window = start or 0

if start and (count ~= before or back) then
  local few = count % 1e7
  -- A node whose data of the zone differ may have the period end later.
  changed, life = format('%d:%d%07d', start, (count - few) / 1e7, few), reset + 86400000000
end
