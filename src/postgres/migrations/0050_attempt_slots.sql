-- serves 0049
-- The webhook route of each delivery attempt (decision 0072).
alter table delivery_attempts add column slot smallint not null default 0;
alter table delivery_failures add column slot smallint not null default 0;
comment on column delivery_attempts.slot is 'Slot of the route. 0 for the webhook itself, and for attempts from before this column.';
comment on column delivery_failures.slot is 'As in delivery_attempts.';
