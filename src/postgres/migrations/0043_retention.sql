-- serves 0042
-- Finds the present photo of a chat by the key of a file, so that the removal of old files keeps it.
create index on chats using gin (photo jsonb_path_ops) where photo is not null;
-- Finds the oldest requests to join and the oldest events, which are deleted by age.
create index on join_requests (created_at);
create index on member_events (created_at);
