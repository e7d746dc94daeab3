-- The script of several limits. It decides for groups of keys, all or nothing. KINDS is a function for each algorithm,
-- which has the algorithm's LIMIT and KEY, and STEP, as frame.lua has.
--
-- KEYS are the keys of all groups in their order. ARGV has how many limits there are; for each its algorithm, how many
-- numbers it has, and these, which are those of frame.lua; for each group how many keys it has; and for each of these keys
-- the number of its limit, need, want, returned, the limit that the key is held against, and how many units a token of that
-- has.
--
-- If need fits of all keys of a group, each takes it, or what it wants. If not, none does: what refuses is charged for that if its limit says
-- so, and the others are left unchanged. A key that holds something of another type has no say. The reply has five
-- numbers for every key, as that of frame.lua. Retry is 0 if need fits.
SHARED

local held = {} -- what keys hold, as their limits read it
local kinds = {}

KINDS

local limits, place = {}, 1
for i = 1, tonumber(ARGV[1]) do
  local kind, count, given = kinds[ARGV[place + 1]], tonumber(ARGV[place + 2]), {}
  for j = 1, count do
    given[j] = ARGV[place + 2 + j]
  end
  limits[i] = kind(given)
  if limits[i].err then
    return limits[i]
  end
  place = place + 2 + count
end

-- All keys are read before any is written.
local groups, last = {}, 0
while last < #KEYS do
  local group = {}
  place = place + 1
  for i = 1, tonumber(ARGV[place]) do
    last = last + 1
    local key, limit = KEYS[last], limits[tonumber(ARGV[place + 1])]
    local value = redis.pcall(limit.read, key)
    if type(value) == 'table' and not string.find(value.err, 'WRONGTYPE', 1, true) then
      return value
    end
    held[key] = value
    group[i] = {
      key = key, limit = limit, need = tonumber(ARGV[place + 2]), want = tonumber(ARGV[place + 3]),
      returned = tonumber(ARGV[place + 4]), tokens = tonumber(ARGV[place + 5]), units = tonumber(ARGV[place + 6]),
    }
    place = place + 6
  end
  groups[#groups + 1] = group
end

-- write writes what a key holds from now on.
local function write(key, changed, life)
  local value = held[key]
    WRITE
end

-- What needs no charge and keeps one value is asked with what it would hold afterwards, which is written if all fit.
-- The others are asked twice.
local reply, last = {}, 0
for _, group in ipairs(groups) do
  local fits = true
  for _, one in ipairs(group) do
    local want, returned = 0, 0
    if one.limit.once then
      want, returned = one.want, one.returned
    end
    one.answer = {one.limit.ask(one.key, one.need, want, returned, one.tokens, one.units, true)}
    fits = fits and (one.answer[1] < 0 or one.answer[3] == 0)
  end
  for _, one in ipairs(group) do
    local answer, limit = one.answer, one.limit
    local refuses = answer[3] ~= 0
    if answer[1] < 0 then
      -- not ours
    elseif fits and limit.once then
      write(one.key, answer[6], answer[7])
    elseif fits or refuses and limit.charges then
      answer = {limit.ask(one.key, one.need, one.want, one.returned, one.tokens, one.units)}
    elseif not refuses then
      answer = {limit.ask(one.key, one.need, 0, 0, one.tokens, one.units, true)} -- without what it would have taken
    elseif limit.once then
      write(one.key, answer[6], answer[7]) -- that other numbers have it now
    end
    reply[last + 1], reply[last + 2], reply[last + 3] = answer[1], answer[2], answer[3]
    reply[last + 4], reply[last + 5] = answer[4], answer[5]
    last = last + 5
  end
end
return reply
