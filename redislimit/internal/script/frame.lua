-- The script of one limit. LIMIT is what it works out once in a call, and KEY is what it does with each key: the two parts
-- of the algorithm's own file. SHARED, STEP and WRITE are files, too, which together.lua uses as well.
--
-- KEYS are the keys. ARGV are three numbers of the limit that are read here, those of its algorithm, and then what is asked:
-- of every key need alone, which is then what is wanted, too, with nothing given back and no debt; or of every key need,
-- want, returned, debt and window; or of every key these, the limit that it is held against in this question, and how many
-- units a token of that has. What a key owes is the key's, whatever limit it is held against. The reply has five numbers
-- for every key: granted (-1: nothing was asked of the key, which holds something of another type), remaining, retry in
-- microseconds (-1: never), reset in microseconds, window. Time is the server's own, in microseconds since 1970.
SHARED

local refusals = ARGV[1] -- what a refused request costs: '0' nothing, '1' what there is, '2' what it asked for
local times = tonumber(ARGV[2]) -- how many times its limit a key may owe
local widest = tonumber(ARGV[3]) -- the largest limit that keys are held against

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
    local need, returned, debt, of, limit, units = tonumber(ARGV[at + 1]), 0, 0, 0, limit, nil
    local want = need
    if each > 1 then
      want, returned, debt, of = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
    end
    if each > 5 then
      limit, units = tonumber(ARGV[at + 6]), tonumber(ARGV[at + 7])
    end
    STEP
    WRITE
  end
  reply[last + 1], reply[last + 2], reply[last + 3] = granted, room, retry
  reply[last + 4], reply[last + 5] = reset, window
  last = last + 5
end
return reply
