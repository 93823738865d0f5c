-- serves 0049
-- Finds the webhooks that fail. The operators' page asks for them every second.
create index webhooks_failing_since_idx on webhooks (failing_since) where failing_since is not null;
