/**
 * Starts a service for all tests of a file. Its processes of the roles `deliver` and `flush` serve metrics on separate
 * ports.
 */
import { request } from 'undici';
import { test } from 'vitest';
import { freePort } from '../../src/dev/processes.js';
import { createRole, type RoleProcess } from '../support/role_process.js';
import { type Service, startService } from '../support/service.js';

type Role = 'deliver' | 'flush';

export interface MeteredRoles {
  readonly service: Service;
  readonly deliver: RoleProcess;
  readonly flush: RoleProcess;
  readonly ports: Readonly<Record<Role, number>>;
  /** Calls the metrics port of a process. */
  get(role: Role, path: string): Promise<{ readonly status: number; readonly text: string }>;
  /** Returns the value of a metric. `name` is a regular expression. */
  figure(role: Role, name: string): Promise<number>;
}

// biome-ignore lint/correctness/noEmptyPattern: the runner reads the names of other fixtures from the pattern
const shared = test.extend('roles', { scope: 'file' }, async ({}, { onCleanup }): Promise<MeteredRoles> => {
  const extraEnv = { WEBHOOK_ALLOW_CIDRS: '127.0.0.1/32' };
  const service = await startService({ flushing: false, delivering: false, extraEnv });
  const started: RoleProcess[] = [];
  onCleanup(async () => {
    await Promise.all(started.map((role) => role.stop()));
    await service.stop();
  });
  const ports = { deliver: await freePort(), flush: await freePort() };
  const start = async (role: Role) => {
    const made = createRole(role, async () => ({ ...service.env, METRICS_PORT: `${ports[role]}` }));
    started.push(made);
    await made.start();
    return made;
  };
  const [deliver, flush] = await Promise.all([start('deliver'), start('flush')]);
  const get = async (role: Role, path: string) => {
    const { statusCode, body } = await request(`http://127.0.0.1:${ports[role]}${path}`);
    return { status: statusCode, text: await body.text() };
  };
  const figure = async (role: Role, name: string) =>
    Number(new RegExp(`^${name} (\\d+)$`, 'm').exec((await get(role, '/metrics')).text)?.[1]);
  return { ...{ service, deliver, flush, ports }, get, figure };
});

/** Calls `begin` with the processes. The processes run until all tests of the file have ended. */
export const onMeteredRoles = (begin: (roles: MeteredRoles) => void) =>
  shared.beforeAll(({ roles }) => begin(roles));
