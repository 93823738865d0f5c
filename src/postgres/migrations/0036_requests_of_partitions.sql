-- serves 0034
-- A partition takes the results of its calls along when it is moved, so that a repeated call does not change its rows again.
alter table control_requests add column partition int;
create index on control_requests (partition, request) where partition is not null;
comment on column control_requests.partition is 'The partition whose rows the call changed; null for a change of control records.';
