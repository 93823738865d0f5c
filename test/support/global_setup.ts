/** Starts the shared servers before the first test file and stops them after the last. */
import type { TestProject } from 'vitest/node';
import { startTestServers } from './servers.js';

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const servers = await startTestServers();
  project.provide('redisUrl', servers.redisUrl);
  project.provide('databaseUrl', servers.databaseUrl);
  return servers.stop;
}
