-- What all four scripts share: it is put in front of each of them.
--
-- KEYS are the keys, ARGV the numbers of the limit and then, for every key, need, want, returned, debt and window. The
-- reply has, for every key: granted (-1: nothing was asked of the key, which holds something of another type),
-- remaining, retry in microseconds (-1: never), reset in microseconds, window. Time is the server's own, in microseconds
-- since 1970. All numbers are whole and below 2^53, so a double holds them exactly, and so does floor or ceil of
-- a quotient of two of them.
local clock = redis.call('TIME')
local now = tonumber(clock[1]) * 1000000 + tonumber(clock[2])
local reply = {}

-- ask returns what is asked of the i-th key, by a script whose limit has that many numbers.
local function ask(i, numbers)
  local at = numbers + (i - 1) * 5
  return tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]),
    tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])
end

-- answer adds what is said of a key.
local function answer(granted, remaining, retry, reset, window)
  local n = #reply
  reply[n + 1], reply[n + 2], reply[n + 3] = granted, remaining, retry
  reply[n + 4], reply[n + 5] = reset, window
end

-- grant returns what is granted of the room that there is.
local function grant(need, want, room)
  if room < need then
    return 0
  end
  return math.min(want, math.max(need, math.floor(room / 4)), room)
end

-- foreign are the keys that hold something of another type. failed is any other error, such as that the user may not
-- read: it is the script's reply. All keys are read before any is written.
local foreign, failed = {}, nil

-- check notes an error of a reading.
local function check(key, value)
  if type(value) == 'table' then
    if string.find(value.err, 'WRONGTYPE', 1, true) then
      foreign[key] = true
    else
      failed = value
    end
  end
end

-- strings returns what the keys hold.
local function strings()
  local held = {}
  for _, key in ipairs(KEYS) do
    held[key] = redis.pcall('GET', key)
    check(key, held[key])
  end
  return held
end

-- each has every key decided that is not foreign, and returns the reply.
local function each(decide)
  if failed then
    return failed
  end
  for i, key in ipairs(KEYS) do
    if foreign[key] then
      answer(-1, 0, 0, 0, 0)
    else
      decide(i, key)
    end
  end
  return reply
end

-- lifetime returns a time to live in milliseconds that is not shorter than so many microseconds.
local function lifetime(micros)
  return string.format('%.0f', math.ceil(micros / 1000) + 1)
end
