-- serves 0024
-- When a person came into a chat. Of those who were there before nothing is known but when the chat was made.
alter table chat_members add column joined_at timestamptz;
alter table chat_members alter column joined_at set default now();

-- Who added a stranger: each may add so many in a day.
alter table stranger_adds add column by_id bigint;
create index on stranger_adds (by_id, created_at);
