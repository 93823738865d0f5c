--[[
@summary Stores the link preview of a web page in a slot of the cache.
@why     The preview and its expiry must be set together.
@repeatable A repeated call stores the same preview.
@key     preview  {NN}:link_preview:<slot>  STRING  expires
@arg     kept     bytes    digest of the URL and preview
@arg     ttl_ms   int
]]
redis.call('SET', preview_key, kept, 'PX', ttl_ms)
return ok()
