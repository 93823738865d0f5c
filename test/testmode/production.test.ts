/** Tests that no production role has an endpoint of the test server. */
import { expect, test } from 'vitest';
import { actions } from '../../src/testmode/actions.js';
import { testEndpoints } from '../../src/testmode/endpoints.js';
import { type Service, startService } from '../support/service.js';
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

test.each([0, 1])('front %i answers 404 to every call of the test server', async (index) => {
  const user = await service.newUser('olga');
  const { url } = service.fronts[index] as (typeof service.fronts)[0];
  await expectAbsent(url, user.token);
  await expectAbsent(url, service.adminToken);
});

test('the role front answers 404 to every call of the test server', async () => {
  const own = await startService();
  try {
    await expectAbsent(own.fronts[0].url, own.adminToken);
  } finally {
    await own.stop();
  }
});
