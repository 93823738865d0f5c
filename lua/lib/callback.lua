--[[
@summary Pressing an inline button: whether the message has it, and the open query. Needs message.
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

-- Query ids name their partition in the last three digits, so that the answer finds its way with the id alone.
local function open_query(prefix, version, partition, chat, user, bot)
  local id = version .. partition
  redis.call('SET', prefix .. id, chat .. ' ' .. user .. ' ' .. bot, 'PX', LIMITS.callback_query_age_ms_max)
  return id
end
