/** Runs the steps of the feature bot with each of several bots. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../src/dev/processes.js';
import { makeCertificate } from '../support/certificates.js';
import { png } from '../support/samples.js';
import { temporaryFolder } from '../support/servers.js';
import { resultOf, type Service, type TestBot } from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { type Balancer, startBalancer } from './balancer.js';
import { eventually } from './event_source.js';
import { createFeatureBot } from './feature_bot.js';
import { type Hook, libraries } from './feature_libraries.js';
import { featureSteps, openScene, type Scene } from './feature_steps.js';

const certificate = makeCertificate({ addresses: ['127.0.0.1'] });
const folder = temporaryFolder();
const certificateFile = join(folder, 'certificate.pem');
const keyFile = join(folder, 'key.pem');
writeFileSync(certificateFile, certificate.cert);
writeFileSync(keyFile, certificate.key);

export interface FeatureRun {
  readonly bot: TestBot;
  readonly root: string;
  /** The webhook of the bot. Absent if the bot gets its updates by polling. */
  readonly hook?: Hook;
  /** Called with each error of the bot. */
  fail(error: unknown): void;
}

export interface FeatureBot {
  /** False if the programs that the bot needs are not installed. Its tests are then skipped. */
  readonly installed: boolean;
  /** Starts the bot. Resolves with a function that stops it. */
  start(run: FeatureRun): Promise<() => unknown>;
}

/**
 * Runs all steps with each bot. If `talks` is true, runs all steps with the first bot, and only the first step with the
 * other bots.
 */
export function testFeatures(
  mode: 'polling' | 'a webhook' | 'a webhook route',
  bots: Readonly<Record<string, FeatureBot>>,
  talks = false,
): void {
  let service: Service;
  let balancer: Balancer;
  onSharedService(async (running) => {
    service = running;
    balancer = await startBalancer(service.fronts);
  });
  afterAll(() => balancer?.close());

  async function startBot({ bot }: Scene, start: FeatureBot['start'], fail: FeatureRun['fail']) {
    const run = { bot, root: balancer.url, fail };
    if (mode === 'polling') return start(run);
    const hook = { port: await freePort(), certificate, certificateFile, keyFile, secret: 'Known-to-two' };
    const stop = await start({ ...run, hook });
    await eventually(async () => {
      const info = await resultOf(service.bot(bot, 'getWebhookInfo'));
      expect(info).toMatchObject({ has_custom_certificate: true });
    });
    if (mode === 'a webhook route') await moveToRoute(bot, hook.secret);
    return stop;
  }

  /** Removes the webhook that a library has set. Sets a route to the same receiver instead. */
  async function moveToRoute(bot: TestBot, secret_token: string): Promise<void> {
    const { url, allowed_updates } = await resultOf(service.bot(bot, 'getWebhookInfo'));
    await resultOf(service.bot(bot, 'deleteWebhook'));
    const receiver = { url, certificate: certificate.cert, secret_token, allowed_updates };
    await resultOf(service.bot(bot, 'setWebhookRoute', { name: 'library', ...receiver }));
  }

  for (const [i, [name, { installed, start }]] of Object.entries(bots).entries())
    describe.skipIf(!installed)(`a bot on ${name} over ${mode}`, () => {
      let scene: Scene;
      let stop: (() => unknown) | undefined;
      const failures: unknown[] = [];

      beforeAll(async () => {
        scene = await openScene(service, 'feature');
        stop = await startBot(scene, start, (error) => void failures.push(error));
      });
      afterAll(() => stop?.());

      // The ping comes before the steps, so that the steps show that the bot still works after a ping.
      test.skipIf(mode === 'polling')('the bot accepts a ping without an error', async () => {
        const path = `/api/me/bots/${scene.bot.id}/webhook/ping`;
        const params = mode === 'a webhook route' ? { route: 'library' } : {};
        const shown = await resultOf(service.app(scene.ann, 'POST', path, params));
        expect(shown).toMatchObject({ delivered: true, error: null });
        expect(failures.splice(0)).toEqual([]);
      });

      for (const step of talks && i > 0 ? featureSteps().slice(0, 1) : featureSteps())
        test(step.name, async () => {
          await step.run(scene).finally(() => expect(failures.splice(0)).toEqual([]));
        });
    });
}

/** The bots on npm libraries. They run in this process. */
export const libraryBots: Readonly<Record<string, FeatureBot>> = Object.fromEntries(
  Object.entries(libraries).map(([name, create]) => [
    name,
    {
      installed: true,
      start({ bot, root, hook, fail }) {
        const library = create(bot, root);
        const handleUpdate = createFeatureBot(library, png(64, 64));
        const handle = (update: object) => handleUpdate(update).catch(fail);
        return hook ? library.serve(handle, hook) : library.poll(handle);
      },
    },
  ]),
);
