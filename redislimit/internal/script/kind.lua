kinds['NUMBER'] = function(ARGV)
  local refusals, times, widest = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

LIMIT

  local function ask(key, need, want, returned, limit, units, only)
    local value, debt, of = held[key], 0, 1
    local granted, room, retry, reset, window = -1, 0, 0, 0, 0
    if type(value) ~= 'table' then
    STEP
      if only then
        return granted, room, retry, reset, window, changed, life
      end
    WRITE
    end
    return granted, room, retry, reset, window
  end
  return {read = read, ask = ask, charges = refusals ~= '0', once = read == 'GET' and refusals == '0'}
end
