-- serves 0024
-- Names the installation, in Postgres and in its Redis. REDIS_GENERATION counts how often it began to use an empty Redis.
insert into installation (name, value) values ('ID', gen_random_uuid()::text), ('REDIS_GENERATION', '0')
on conflict do nothing;

-- Which generation each running node works on; null where it works on none.
create table redis_nodes (
  node text primary key,
  generation integer,
  -- its Redis does not answer at the moment
  away boolean not null,
  seen_at timestamptz not null default now()
);
