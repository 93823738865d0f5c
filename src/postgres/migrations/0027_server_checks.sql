-- serves 0019
-- Begins a transaction through a pooler, which may have put another server behind a connection since that was compared.
create function require_server(checked_server text) returns void language plpgsql stable as $$
begin
  if server_identity() <> checked_server then
    raise exception 'this server was not compared with Redis yet' using errcode = 'PTL01';
  end if;
end $$;

-- A revocation of an administrator's token outlives a Postgres that goes back, as those of bots and people do.
create function note_admin_revocation() returns trigger language plpgsql as $$
begin
  perform note_revocation('+admin:' || translate(encode(old.fingerprint, 'base64'), E'\n', ''));
  return null;
end $$;
create trigger revoked_admin_token after delete on admin_tokens
  for each row execute function note_admin_revocation();
