-- All numbers are whole and below 2^53, so a double holds them exactly, and so does x - x % 1, which is x rounded down,
-- and x + -x % 1, which is x rounded up, of a quotient x of two of them. A call of math.floor or of a function takes
-- longer than either, and one of format with %.0f longer than with %d. But %d writes only what a C long holds: numbers
-- that may be larger are written in two pieces.
local call, format = redis.call, string.format
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]

-- grant returns what is granted of the room that there is: a part of it, or of a want below 0 as much as there is.
local function grant(need, want, room)
  if room < need then
    return 0
  elseif want == need then
    return need
  elseif want < 0 then
    return math.min(-want, room)
  end
  return math.min(want, math.max(need, math.floor(room / 4)), room)
end

-- lifetime returns a time to live in milliseconds that is not shorter than so many microseconds.
local function lifetime(micros)
  micros = micros / 1000
  return micros + -micros % 1 + 1
end
