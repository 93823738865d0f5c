--[[
@summary Returns the link preview in a slot of the cache.
@why     The runner sends every command as a script.
@flag    no-writes
@key     preview  {NN}:link_preview:<slot>  STRING
@ok      kept     bytes?   digest of the URL and preview; null for an empty slot
]]
return ok(redis.call('GET', preview_key))
