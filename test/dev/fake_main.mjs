/**
 * Replaces the roles of the program in tests of the supervisor. Like a real role, this program reports when it is
 * ready, and ends on SIGTERM or when its parent ends. As a front, it also answers the calls that create the demo data,
 * and keeps the created users and bots in a file.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { readConfig } from '../../dist/config/config.js';

const role = process.argv[2];
const env = process.env;
// Reads the settings first, as every role does. Leaves out BASE_URL, because the test runner sets a variable of this
// name for its own use.
const config = readConfig({ ...env, BASE_URL: undefined });

if (role === 'migrate') {
  if (env.FAKE_MIGRATE_FAILS) {
    process.stdout.write(`${JSON.stringify({ level: 60, msg: 'migration 7 does not apply' })}\n`);
    process.exit(1);
  }
  if (env.FAKE_PEPPER && config.TOKEN_PEPPER?.[0] !== env.FAKE_PEPPER) process.exit(1);
  process.exit(0);
}

const ready = () => process.send?.({ type: 'ready' });
const end = () => {
  if (env.FAKE_ORDER) writeFileSync(env.FAKE_ORDER, `${role}\n`, { flag: 'a' });
  process.exit(0);
};
process.once('disconnect', end);
process.once('SIGTERM', end);
process.stdout.write(`${JSON.stringify({ level: 30, msg: `${role} serves` })}\n`);

if (role !== 'front') {
  setInterval(() => {}, 1_000);
  ready();
} else {
  serve();
}

function serve() {
  const path = join(env.PETREL_HOME, 'fake.state');
  const state = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : { users: [], bots: [], next: 1 };
  const save = () => writeFileSync(path, JSON.stringify(state));
  const token = () => randomBytes(12).toString('hex');
  const bearer = (request) => /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1];

  const routes = {
    'POST /api/admin/users': (body) => {
      if (state.users.some((user) => user.username === body.username)) return 400;
      const user = { id: state.next++, external_id: `x${state.next}`, ...body };
      state.users.push({ ...user, token: token() });
      return { user, token: state.users.at(-1).token };
    },
    'GET /api/me': (_, user) => user ?? 401,
    'POST /api/me/bots': (body, user) => {
      if (state.bots.some((bot) => bot.username === body.username)) return 400;
      state.bots.push({ id: state.next++, username: body.username, owner: user.id, token: token() });
      return state.bots.at(-1);
    },
    'GET /api/me/bots': (_, user) => state.bots.filter((bot) => bot.owner === user.id),
  };

  const answer = (request, body) => {
    const [url] = request.url.split('?');
    const user = state.users.find((one) => one.token === bearer(request));
    const me = /^\/bot([^/]+)\/getMe$/.exec(url);
    if (me) return state.bots.find((bot) => bot.token === me[1]) ?? 401;
    const isAdmin = bearer(request) === config.ADMIN_TOKEN;
    const issue = /^\/api\/admin\/users\/(\d+)\/tokens$/.exec(url);
    if (url.startsWith('/api/admin') && !isAdmin) return 401;
    if (issue) {
      const target = state.users.find((one) => one.id === Number(issue[1]));
      if (!target) return 404;
      target.token = token();
      return { token: target.token };
    }
    const shown = /^\/api\/me\/bots\/(\d+)\/token$/.exec(url);
    if (shown) {
      const bot = state.bots.find((one) => one.id === Number(shown[1]) && one.owner === user?.id);
      return bot ? { token: bot.token } : 404;
    }
    return routes[`${request.method} ${url}`]?.(body, user) ?? 404;
  };

  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const result = answer(request, text ? JSON.parse(text) : {});
    save();
    const status = typeof result === 'number' ? result : 200;
    const envelope =
      status === 200
        ? { ok: true, result }
        : {
            ok: false,
            error_code: status,
            description: status === 400 ? 'Bad Request: username is already taken' : '',
          };
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(envelope));
  });
  if (!env.FAKE_SLOW_FRONT) server.listen(Number(env.PORT), env.HOST, ready);
  else setInterval(() => {}, 1_000);
}
