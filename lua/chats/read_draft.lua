--[[
@summary Returns the draft in a direct chat. Omits the text if the person has stopped the draft.
@flag    no-writes
@ok      id       text?   id of the draft; null if there is none
@ok      after    text?   id of the chat's last message when the draft was stored
@ok      flags    text?   s if the person may stop the draft, then k if a stopped draft stays visible
@ok      stopped  flag
@ok      content  text?   text and entities, as JSON
]]
local inc = trusted_incarnation(meta_key, run)
if not inc then return refuse('stale_run') end
local d = read_draft(draft_key)
if not d then return ok(false, false, false, 0, false) end
return ok(d.id, d.after, d.flags, d.stopped and 1 or 0, d.content)
