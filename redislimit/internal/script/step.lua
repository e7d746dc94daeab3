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
