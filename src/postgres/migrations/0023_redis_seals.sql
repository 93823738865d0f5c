-- A seal proves once that a Redis which was stopped in order lost nothing.
alter table partitions add column seal text, add column seal_run text;
comment on column partitions.seal is 'Written last to Redis before it was stopped in order; null once the incarnation was raised.';
comment on column partitions.seal_run is 'The run of Redis that was opened by the seal: no other may use it.';
