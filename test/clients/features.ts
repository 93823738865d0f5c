/** Runs the feature bot with each npm library. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../src/dev/processes.js';
import { makeCertificate } from '../support/certificates.js';
import { png } from '../support/samples.js';
import { temporaryFolder } from '../support/servers.js';
import { resultOf, type Service } from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { type Balancer, startBalancer } from './balancer.js';
import { createFeatureBot } from './feature_bot.js';
import { type Hook, libraries } from './feature_libraries.js';
import { featureSteps, openScene, type Scene } from './feature_steps.js';

const certificate = makeCertificate({ addresses: ['127.0.0.1'] });
const certificateFile = join(temporaryFolder(), 'certificate.pem');
writeFileSync(certificateFile, certificate.cert);

let service: Service;
let balancer: Balancer;

/** Runs the steps with each library. */
export function testFeatures(mode: 'polling' | 'a webhook'): void {
  onSharedService(async (running) => {
    service = running;
    balancer = await startBalancer(service.fronts);
  });
  afterAll(() => balancer?.close());

  describe.each(Object.keys(libraries))(`a bot on %s over ${mode}`, (name) => {
    let scene: Scene;
    let stop: (() => unknown) | undefined;
    const failures: unknown[] = [];

    beforeAll(async () => {
      scene = await openScene(service, 'feature');
      const library = libraries[name]?.(scene.bot, balancer.url) ?? expect.unreachable(name);
      const bot = createFeatureBot(library, png(64, 64));
      const handle = (update: object) => bot(update).catch((error) => void failures.push(error));
      if (mode === 'polling') stop = await library.poll(handle);
      else {
        const hook: Hook = { port: await freePort(), certificate, certificateFile, secret: 'Known-to-two' };
        stop = await library.serve(handle, hook);
        const info = await resultOf(service.bot(scene.bot, 'getWebhookInfo'));
        expect(info).toMatchObject({ has_custom_certificate: true });
      }
    });
    afterAll(() => stop?.());

    for (const step of featureSteps())
      test(step.name, async () => {
        await step.run(scene).finally(() => expect(failures.splice(0)).toEqual([]));
      });
  });
}
