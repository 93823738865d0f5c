--[[
@summary Checks inline buttons and opens callback queries.
@key     granted  {NN}:granted_edits:<chat>:<message_id>  STRING
@derived query    {NN}:callback_query:<id>                STRING
@err     not_found
@err     no_button
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

-- Allows the bot to edit the message once without the usual interval, because a person waits for this edit.
local function grant_edit(key)
  local unused = tonumber(redis.call('GET', key) or 0)
  redis.call('SET', key, math.min(unused + 1, LIMITS.granted_edits_max), 'PX', LIMITS.granted_edit_ttl_ms)
end

-- The last three digits of a query id are the query's partition, so a front can find the partition from the id alone.
local function open_query(prefix, version, partition, chat, user, bot)
  local id = version .. partition
  redis.call('SET', prefix .. id, chat .. ' ' .. user .. ' ' .. bot, 'PX', LIMITS.callback_query_age_ms_max)
  return id
end
