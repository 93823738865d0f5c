--[[
@summary Checks inline buttons and opens callback queries. Requires the includes message.
]]
local function has_button(markup, data)
  if markup == '' then return false end
  for _, row in ipairs(cmsgpack.unpack(markup).inline_keyboard) do
    for _, button in ipairs(row) do
      if button.callback_data == data then return true end
    end
  end
  return false
end

-- The last three digits of a query id are its partition, so that an answer can be routed by the id alone.
local function open_query(prefix, version, partition, chat, user, bot)
  local id = version .. partition
  redis.call('SET', prefix .. id, chat .. ' ' .. user .. ' ' .. bot, 'PX', LIMITS.callback_query_age_ms_max)
  return id
end
