-- The service message of a change. Null: the change has none.
alter table member_events add column service jsonb;
comment on table member_events is 'Changes of a chat that were not yet reported to its bots and shown in the chat.';
