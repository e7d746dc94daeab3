-- What a window that has begun, or has not, counts in this call.
local before = count
if returned > 0 and start and (start == of or of == 1) then -- 1: of any
  count = math.max(0, count - returned)
end
if debt > 0 then
  count = math.max(count, math.min(times * limit, count + debt))
end
if count < limit then
  room = limit - count
end
granted = grant(need, want, room)
count = count + granted
