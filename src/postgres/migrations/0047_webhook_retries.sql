-- How a bot wants failed deliveries to be retried (decision 0072).
alter table webhooks add column retry jsonb;
comment on column webhooks.retry is 'First delay and maximum age in s, and the factor of the delays. Null for the usual schedule.';
