-- Webhook routes of a bot (decision 0072).
alter table webhooks add column routes_box bytea;
comment on column webhooks.routes_box is 'Routes as JSON, with their URLs and secret tokens, encrypted like url_box. Null for a bot that never had any.';
