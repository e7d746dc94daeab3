    if changed and changed ~= '' then
      call('SET', key, changed, 'PX', lifetime(life))
      held[key] = changed
    elseif changed and value then
      call('DEL', key)
      held[key] = false
    end
