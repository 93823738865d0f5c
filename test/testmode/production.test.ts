/** Tests that no production role has an endpoint of the test server. */
import { expect, test } from 'vitest';
import { actions } from '../../src/testmode/actions.js';
import { testEndpoints } from '../../src/testmode/endpoints.js';
import type { Service } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
onSharedService((running) => {
  service = running;
});

const calls = testEndpoints.flatMap(({ verb, path }) =>
  (path.includes('{action}') ? actions : [{ name: '' }]).map(({ name }) => {
    const filled = path.replace('{world}', '1').replace('{person}', 'ann').replace('{action}', name);
    return { verb, path: filled };
  }),
);

async function expectAbsent(url: string, token: string): Promise<void> {
  expect(calls.length).toBeGreaterThan(actions.length);
  for (const { verb, path } of calls)
    for (const body of verb === 'POST' ? ['{}', undefined] : [undefined]) {
      const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
      const response = await fetch(url + path, { method: verb, headers, ...(body && { body }) });
      expect([path, response.status]).toEqual([path, 404]);
    }
}

test.each([
  ['all', 0],
  ['front', 1],
] as const)('the role %s answers 404 to every call of the test server', async (role, index) => {
  const front = service.fronts[index] as Service['fronts'][0];
  expect(front.role).toBe(role);
  const user = await service.newUser('olga');
  await expectAbsent(front.url, user.token);
  await expectAbsent(front.url, service.adminToken);
});
