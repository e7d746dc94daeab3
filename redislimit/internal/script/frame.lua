-- What all scripts share. In the place of LIMIT comes what a script works out once in a call, and in the place of KEY what
-- it does with each key: the two parts of the algorithm's own file.
--
-- KEYS are the keys. ARGV are three numbers of the limit that are read here, those of its algorithm, and then what is asked:
-- of every key need alone, which is then what is wanted, too, with nothing given back and no debt; or of every key need,
-- want, returned, debt and window; or of every key these, the limit that it is held against in this question, and how many
-- units a token of that has. What a key owes is the key's, whatever limit it is held against. The reply has, for every key: granted (-1: nothing was asked of the key, which holds something of another type), remaining, retry
-- in microseconds (-1: never), reset in microseconds, window. Time is the server's own, in microseconds since 1970.
--
-- All numbers are whole and below 2^53, so a double holds them exactly, and so does x - x % 1, which is x rounded down,
-- and x + -x % 1, which is x rounded up, of a quotient x of two of them. A call of math.floor or of a function takes
-- longer than either, and one of format with %.0f longer than with %d. But %d writes only what a C long holds: numbers
-- that may be larger are written in two pieces.
local call, format = redis.call, string.format
local refusals = ARGV[1] -- what a refused request costs: '0' nothing, '1' what there is, '2' what it asked for
local times = tonumber(ARGV[2]) -- how many times its limit a key may owe
local widest = tonumber(ARGV[3]) -- the largest limit that keys are held against
local clock = call('TIME')
local now = clock[1] * 1000000 + clock[2]

-- grant returns what is granted of the room that there is.
local function grant(need, want, room)
  if room < need then
    return 0
  elseif want == need then
    return need
  end
  return math.min(want, math.max(need, math.floor(room / 4)), room)
end

-- lifetime returns a time to live in milliseconds that is not shorter than so many microseconds.
local function lifetime(micros)
  micros = micros / 1000
  return micros + -micros % 1 + 1
end

LIMIT

-- What the algorithm reads of each key. It is a table if the key holds something of another type. Any other error, such
-- as that the user may not read, is the reply. All keys are read before any is written.
local held = {}
for _, key in ipairs(KEYS) do
  local value = redis.pcall(read, key)
  if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE', 1, true) then
    return value
  end
  held[key] = value
end

local each = (#ARGV - numbers) / #KEYS -- numbers that are asked of a key
local reply, last = {}, 0
for i, key in ipairs(KEYS) do
  local value = held[key]
  local granted, room, retry, reset, window = -1, 0, 0, 0, 0
  if type(value) ~= 'table' then
    local at = numbers + (i - 1) * each
    local need, returned, debt, of, limit = tonumber(ARGV[at + 1]), 0, 0, 0, limit
    local want = need
    if each > 1 then
      want, returned, debt, of = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
    end
    if each > 5 then
      limit = tonumber(ARGV[at + 6])
    end
    local mayPay = refusals ~= '0' and want > 0 and returned + debt == 0
    local changed, life -- what the key holds from now on, '' for nothing, and for how many microseconds

    for pass = 1, 2 do
    KEY
      if not mayPay or granted > 0 or need == 0 then
        break
      end
      -- A refused request that costs something is a charge: the same again with a debt, which decides about nothing.
      debt, want, mayPay = need, 0, false
      if refusals == '1' then
        debt = math.min(need, room)
      end
      granted, room, retry, reset, changed = 0, 0, 0, 0, nil
    end

    if changed and changed ~= '' then
      call('SET', key, changed, 'PX', lifetime(life))
      held[key] = changed
    elseif changed and value then
      call('DEL', key)
      held[key] = false
    end
  end
  reply[last + 1], reply[last + 2], reply[last + 3] = granted, room, retry
  reply[last + 4], reply[last + 5] = reset, window
  last = last + 5
end
return reply
