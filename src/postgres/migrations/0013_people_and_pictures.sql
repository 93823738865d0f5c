-- What people do for themselves: tokens by name, and pictures of their bots.
alter table user_tokens add column last_used_on date;
create unique index user_tokens_by_name on user_tokens (user_id, name) where name <> '';
comment on column user_tokens.last_used_on is 'By UTC; noted when a node looks the token up, which it does at most once a minute.';
